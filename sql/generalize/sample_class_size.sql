-- anon.sample_class_size: how many people of a random sample a class must have so that fewer than k in the population
-- are improbable, whatever the classes are. A person in a class with fewer than k people of the population has at most
-- k - 2 others beside them, of whom each is in the sample with probability p = people / population:
--     the smallest f with P[Binomial(k - 2, p) >= f - 1] <= beta
-- Of the people in released classes, those whose class has fewer than k in the population are then at most the share
-- beta, on average over samples. It is assumed that the table is a simple random sample of the population, and nothing
-- about the sizes of the classes.
--     k           number of people that a class should have in the population [a whole number, at least 2]
--     beta        share of the released people who may have fewer than k equals; 0: nobody, a class has k people [a
--                 number of at least 0 and below 1]
--     population  number of people in the population [a number, at least `people` and `k`]
--     people      number of people in the table [a number, at least 1]
-- promises: EqualsDefinition()
-- test: tests/generalize/sample_class_size.test
CREATE OR REPLACE MACRO anon.sample_class_size(k, beta, population, people) AS
    CASE WHEN NOT coalesce(regexp_full_match(CAST(k AS VARCHAR), '\d+') AND anon._exact_number(k) >= 2
                           AND anon._exact_number(beta) >= 0 AND anon._exact_number(beta) < 1
                           AND anon._exact_number(people) >= 1
                           AND anon._exact_number(population) >= greatest(anon._exact_number(people),
                                                                          anon._exact_number(k))
                           AND isfinite(anon._exact_number(population)), false)
              THEN CAST(anon._refuse('anon.sample_class_size: k must be a whole number of at least 2, beta at least 0 '
                                     || 'and below 1, people at least 1, and population at least people and k; got '
                                     || concat_ws(', ', coalesce(CAST(k AS VARCHAR), 'NULL'),
                                                  coalesce(CAST(beta AS VARCHAR), 'NULL'),
                                                  coalesce(CAST(population AS VARCHAR), 'NULL'),
                                                  coalesce(CAST(people AS VARCHAR), 'NULL')) || '.') AS BIGINT)
         WHEN anon._exact_number(people) = anon._exact_number(population) OR anon._exact_number(beta) = 0
              THEN CAST(anon._exact_number(k) AS BIGINT)
         ELSE 2 + len(list_filter(                              -- of each number of others, how likely more of them are
                      list_transform(
                          [list_transform(range(TRY_CAST(anon._exact_number(k) AS BIGINT) - 1), lambda others:
                               anon._binomial_term(others, anon._exact_number(k) - 2,
                                                   anon._exact_number(people) / anon._exact_number(population)))],
                          lambda terms: list_transform(range(1, 1 + len(terms)), lambda place:
                               coalesce(list_sum(terms[place + 1:len(terms)]), 0)))[1],
                      lambda tail: tail > anon._exact_number(beta) * (1 + 1e-12))) END;
COMMENT ON MACRO anon.sample_class_size IS
    'Number of people of a sample that a class must have so that fewer than k in the population are improbable.';
