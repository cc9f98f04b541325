-- anon.sample_class_size: how many people of a random sample a class must have so that fewer than k in the population
-- are improbable, whatever the classes are. A person in a class with fewer than k people of the population has at most
-- k - 2 others beside them, of whom each is in the sample with probability p = people / population:
--     the smallest f with P[Binomial(k - 2, p) >= f - 1] <= beta
-- Of the people in released classes, those whose class has fewer than k in the population are then at most the share
-- beta, on average over samples. It is assumed that the table is a simple random sample of the population, and nothing
-- about the sizes of the classes.
--     k           number of people that a class should have in the population [a whole number, at least 2]
--     beta        share of the released people who may have fewer than k equals [a number between 0 and 1]
--     population  number of people in the population [a number, at least `people`]
--     people      number of people in the table [a number, at least 1]
-- promises: EqualsDefinition()
-- test: tests/generalize/sample_class_size.test
CREATE OR REPLACE MACRO anon.sample_class_size(k, beta, population, people) AS
    CASE WHEN NOT coalesce(k >= 2 AND beta > 0 AND beta < 1 AND people >= 1 AND population >= people
                           AND isfinite(CAST(population AS DOUBLE)), false)
              THEN CAST(anon._refuse('anon.sample_class_size: k must be at least 2, beta between 0 and 1, and '
                                     || 'population at least people, which is at least 1; got '
                                     || concat_ws(', ', coalesce(CAST(k AS VARCHAR), 'NULL'),
                                                  coalesce(CAST(beta AS VARCHAR), 'NULL'),
                                                  coalesce(CAST(population AS VARCHAR), 'NULL'),
                                                  coalesce(CAST(people AS VARCHAR), 'NULL')) || '.') AS BIGINT)
         WHEN people = population THEN CAST(k AS BIGINT)
         ELSE 2 + len(list_filter(                              -- of each number of others, how likely more of them are
                      list_transform(
                          [list_transform(range(CAST(k - 1 AS BIGINT)), lambda others:
                               anon._binomial_term(others, k - 2, people / CAST(population AS DOUBLE)))],
                          lambda terms: list_transform(range(1, 1 + len(terms)), lambda place:
                               coalesce(list_sum(terms[place + 1:len(terms)]), 0)))[1],
                      lambda tail: tail > beta * (1 + 1e-12))) END;
COMMENT ON MACRO anon.sample_class_size IS
    'Number of people of a sample that a class must have so that fewer than k in the population are improbable.';
