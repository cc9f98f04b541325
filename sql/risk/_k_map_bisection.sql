-- anon._k_map_bisection: how many people of the population the smallest class can be said to have at least, or the size
-- that a class must have for `k` of them: both by halving an interval whose one end is an answer and the other is not.
--     universe  name of a step with one row: smallest_class, and sampled, the sample's share of the population
--     k         NULL where the number of people is looked for
--     truncated  whether classes that nobody of the sample is in are left out of account
-- A class of the sample is large enough to say that at least k people of the population are in it, if k of them would
-- come into the sample so often with a probability of at most the significance (the next larger number than that which
-- is exceeded so rarely), by the Poisson distribution. k people are enough in any case.
CREATE OR REPLACE MACRO anon._k_map_bisection(universe, k, significance, truncated) AS TABLE
WITH RECURSIVE _duckanon_halves AS (
    SELECT smallest_class AS size, sampled, CASE WHEN k IS NULL THEN smallest_class ELSE 0 END::DOUBLE AS low,
           CASE WHEN k IS NULL
                     THEN smallest_class + ceil((smallest_class + 40 * sqrt(smallest_class) + 100) / sampled)
                ELSE k END::DOUBLE AS high
    FROM query_table(universe)
    UNION ALL
    SELECT size, sampled, CASE WHEN is_class = (k IS NULL) THEN middle ELSE low END,
           CASE WHEN is_class = (k IS NULL) THEN high ELSE middle END
    FROM (SELECT *, tried_size >= tried_k
                    OR (tried_size >= 2
                        AND CASE WHEN truncated
                                      THEN below - exp(-mean) >= (1 - significance) * (1 - exp(-mean))
                                 ELSE below >= 1 - significance END) AS is_class
          FROM (SELECT *, coalesce(list_sum(list_transform(     -- terms twelve deviations away are below 1e-30
                              range(greatest(0, CAST(floor(mean - 12 * sqrt(mean) - 50) AS BIGINT)),
                                    least(CAST(tried_size AS BIGINT) - CASE WHEN truncated THEN 0 ELSE 1 END,
                                          1 + CAST(ceil(mean + 12 * sqrt(mean) + 50) AS BIGINT))),
                              lambda events: exp(events * ln(mean) - mean - lgamma(events + 1)))), 0) AS below
                FROM (SELECT *, tried_k * sampled AS mean
                      FROM (SELECT *, floor((low + high) / 2) AS middle,
                                   CASE WHEN k IS NULL THEN size ELSE middle END AS tried_size,
                                   CASE WHEN k IS NULL THEN middle ELSE k END AS tried_k
                            FROM _duckanon_halves WHERE high - low > 1))))
)
SELECT CASE WHEN k IS NULL THEN max(low) ELSE min(high) END::BIGINT AS found FROM _duckanon_halves;
