-- anon.distinct_budget: the number of classes into which a table may be divided so that each row has at least `k`
-- equals in a population of `population` people with a probability of at least 1 - beta: it is then (1-beta,
-- k)-anonymous.
--     population  number of people [a number above 0]
--     k           number of members that a class should have [a whole number, at least 1]
--     beta        probability that a class has fewer than k members [a number between 0 and 1]
--     D' = n / (k - 1) (1 + x - sqrt(x^2 + 2 x)),  x = -ln(beta) / (k - 1);  n for k = 1, n the population
--     (Probabilistic Anonymity, Theorem 4: the root itself; the paper rounds it to n / k (1 - c) for "some small c")
-- The theorem assumes equally likely classes: anon.anonymity_probability says how much it leaves unused.
-- promises: EqualsDefinition()
-- test: tests/generalize/distinct_budget.test
CREATE OR REPLACE MACRO anon.distinct_budget(population, k, beta := 0.1) AS
    CASE WHEN NOT coalesce(TRY_CAST(population AS DOUBLE) > 0, population IS NULL)
              THEN anon._refuse(anon._must_be('anon.distinct_budget', 'population', 'above 0', population))
         WHEN NOT coalesce(TRY_CAST(k AS DOUBLE) >= 1, k IS NULL)
              THEN anon._refuse(anon._must_be('anon.distinct_budget', 'k', 'a whole number of at least 1', k))
         WHEN NOT coalesce(TRY_CAST(beta AS DOUBLE) > 0 AND TRY_CAST(beta AS DOUBLE) < 1, beta IS NULL)
              THEN anon._refuse(anon._must_be('anon.distinct_budget', 'beta', 'between 0 and 1, both excluded', beta))
         WHEN k = 1 THEN CAST(population AS DOUBLE)
         ELSE CAST(population AS DOUBLE) / (k - 1)
              * (1 - ln(beta) / (k - 1) - sqrt(pow(ln(beta) / (k - 1), 2) - 2 * ln(beta) / (k - 1))) END;
COMMENT ON MACRO anon.distinct_budget IS
    'Number of classes that a table may have to be (1-beta, k)-anonymous in a population.';
