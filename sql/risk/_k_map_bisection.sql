-- anon._k_map_bisection: how many people of the population the smallest class can be said to have at least, or the size
-- that a class must have for `k` of them: both by halving an interval whose one end is an answer and the other is not.
--     universe  name of a step with one row: smallest_class, and sampled, the sample's share of the population
--     k         NULL where the number of people is looked for
CREATE OR REPLACE MACRO anon._k_map_bisection(universe, k, significance, truncated) AS TABLE
WITH RECURSIVE _duckanon_halves AS (
    SELECT smallest_class AS size, sampled, CASE WHEN k IS NULL THEN smallest_class ELSE 0 END::DOUBLE AS low,
           CASE WHEN k IS NULL
                     THEN smallest_class + ceil((smallest_class + 40 * sqrt(smallest_class) + 100) / sampled)
                ELSE k END::DOUBLE AS high
    FROM query_table(universe)
    UNION ALL
    SELECT size, sampled, CASE WHEN goes_up THEN middle ELSE low END, CASE WHEN goes_up THEN high ELSE middle END
    FROM (SELECT size, sampled, low, high, floor((low + high) / 2) AS middle,
                 CASE WHEN k IS NULL THEN anon._is_k_map_class(size, middle, sampled, significance, truncated)
                      ELSE NOT anon._is_k_map_class(middle, k, sampled, significance, truncated) END AS goes_up
          FROM _duckanon_halves
          WHERE high - low > 1)
)
SELECT CASE WHEN k IS NULL THEN max(low) ELSE min(high) END::BIGINT AS found FROM _duckanon_halves;
