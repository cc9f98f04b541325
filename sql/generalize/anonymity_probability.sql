-- anon.anonymity_probability: the probability that a class has at least `k` members in a population that is divided
-- into equally likely classes, and what the Chernoff bound behind anon.distinct_budget promises.
--     probability      P[X >= k], X binomial with n = population, p = 1 / distinct_values: exact, to some 12 digits
--     chernoff_bound   1 - exp(-(n - (k-1) d)^2 / (2 n d)), d the distinct_values; 0 where a class is expected to have
--                      k - 1 members or fewer
--     population       number of people [a number, at least 1]
--     distinct_values  number of equally likely classes [a number, at least 1]
--     k                number of members that a class should have [a whole number, at least 1]
--     (Probabilistic Anonymity, proof of Theorem 4)
-- The tail is summed from its largest term, P[X = k-1] on the way down or P[X = k] on the way up, whichever is the thin
-- side; the first term comes from Stirling's series (Loader's form), since factorials of 10^8 lose all digits.
-- promises: OneRow(), EqualsDefinition()
-- test: tests/generalize/anonymity_probability.test
CREATE OR REPLACE MACRO anon.anonymity_probability(population, distinct_values, k) AS TABLE
WITH _duckanon_case AS (
    SELECT CASE WHEN NOT coalesce(TRY_CAST(population AS DOUBLE) >= 1, false)
                     THEN error(anon._must_be('anon.anonymity_probability', 'population', 'at least 1', population))
                WHEN NOT coalesce(TRY_CAST(distinct_values AS DOUBLE) >= 1, false)
                     THEN error(anon._must_be('anon.anonymity_probability', 'distinct_values', 'at least 1',
                                              distinct_values))
                ELSE anon._checked_whole('anon.anonymity_probability', 'k', k, 1,
                                         floor(CAST(population AS DOUBLE))) END AS n,
           CAST(distinct_values AS DOUBLE) AS d, CAST(k AS DOUBLE) AS least
), _duckanon_thin AS (                                 -- below: from k - 1 down to 0; above: from k up, until it is 0
    SELECT n, d, least, n / d > least AS below, CASE WHEN n / d > least THEN least - 1 ELSE least END AS start,
           CASE WHEN n / d > least THEN least ELSE n - least + 1 END AS terms
    FROM _duckanon_case
    WHERE d > 1 AND least <= n
), _duckanon_terms AS (
    SELECT below, anon._binomial_term(start, n, 1 / d) AS first_term,
           exp(sum(CASE WHEN step = 0 THEN 0.0
                        WHEN below THEN ln((start - step + 1) * (d - 1) / (n - start + step))
                        ELSE ln((n - start - step + 1) / ((start + step) * (d - 1))) END)
               OVER (ORDER BY step ASC NULLS LAST ROWS UNBOUNDED PRECEDING)) AS share
    FROM _duckanon_thin, range(CAST(least(terms, 200 + 20 * sqrt(n / d + least)) AS BIGINT)) AS _(step)
)
SELECT n / d AS expected_rows,
       CASE WHEN least > n THEN 0.0 WHEN d = 1 THEN 1.0
            ELSE (SELECT CASE WHEN any_value(below) THEN 1 - any_value(first_term) * sum(share)
                              ELSE any_value(first_term) * sum(share) END FROM _duckanon_terms) END AS probability,
       CASE WHEN n <= (least - 1) * d THEN 0.0
            ELSE 1 - exp(-pow(n - (least - 1) * d, 2) / (2 * n * d)) END AS chernoff_bound
FROM _duckanon_case;
COMMENT ON MACRO TABLE anon.anonymity_probability IS
    'Probability that a class has at least k members in a population, exact and by the Chernoff bound.';
