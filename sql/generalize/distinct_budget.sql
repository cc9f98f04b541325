-- anon.distinct_budget: the number of classes into which a table may be divided so that each has at least `k` members
-- in a population of `population` people with a probability of at least 1 - beta: it is then (1-beta, k)-anonymous.
--     population  number of people [a number above 0]
--     k           number of members that a class should have [a whole number, at least 2]
--     beta        probability that a class has fewer than k members [a number between 0 and 1]
--     method      'class': a class has fewer than k members with probability beta, by the binomial distribution itself;
--                 'row': the class of a row, which is itself a member, as Definition 4 says to the letter;
--                 'bound': the root of Chernoff's bound in Theorem 4, of which the paper's numbers are
--                 [one of 'class', 'row', 'bound']
--     'class': 1 / q with P[X < k] = beta, X binomial with n and q; 'row': the same with n - 1 and k - 1
--     'bound': n / (k - 1) (1 + x - sqrt(x^2 + 2 x)),  x = -ln(beta) / (k - 1)
--     (Probabilistic Anonymity, Theorem 4: the root itself; the paper rounds it to n / k (1 - c) for "some small c")
-- All assume equally likely classes. Of fewer than k people there is no number of classes: 0.
-- promises: EqualsDefinition()
-- test: tests/generalize/distinct_budget.test
CREATE OR REPLACE MACRO anon.distinct_budget(population, k, beta := 0.1, method := 'class') AS
    CASE WHEN NOT coalesce(anon._exact_number(population) > 0 AND isfinite(anon._exact_number(population)),
                           population IS NULL)
              THEN anon._refuse(anon._must_be('anon.distinct_budget', 'population', 'above 0', population))
         WHEN NOT coalesce(regexp_full_match(CAST(k AS VARCHAR), '\d+') AND anon._exact_number(k) >= 2, k IS NULL)
              THEN anon._refuse(anon._must_be('anon.distinct_budget', 'k', 'a whole number of at least 2', k))
         WHEN NOT coalesce(anon._exact_number(beta) > 0 AND anon._exact_number(beta) < 1, beta IS NULL)
              THEN anon._refuse(anon._must_be('anon.distinct_budget', 'beta', 'between 0 and 1, both excluded', beta))
         WHEN NOT coalesce(CAST(method AS VARCHAR) IN ('class', 'row', 'bound'), false)
              THEN anon._refuse(anon._must_be('anon.distinct_budget', 'method', $$'class', 'row' or 'bound'$$, method))
         ELSE list_transform(list_transform(
                  [-ln(CASE WHEN anon._exact_number(beta) > 0 THEN anon._exact_number(beta) END)
                   / nullif(anon._exact_number(k) - 1, 0)], lambda x:
                  anon._exact_number(population) / nullif(anon._exact_number(k) - 1, 0)
                  * (1 + x - sqrt(x * x + 2 * x))), lambda bound:
                  CASE WHEN method = 'bound' OR bound IS NULL THEN bound
                       ELSE coalesce(1 / anon._largest_share(
                           anon._exact_number(population) - CASE WHEN method = 'row' THEN 1 ELSE 0 END,
                           anon._exact_number(k) - CASE WHEN method = 'row' THEN 1 ELSE 0 END,
                           anon._exact_number(beta), 1 / bound), 0) END)[1] END;
COMMENT ON MACRO anon.distinct_budget IS
    'Number of classes that a table may have to be (1-beta, k)-anonymous in a population.';
