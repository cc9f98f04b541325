-- anon._poisson_below: the probability that a Poisson variable is at most `most`. Terms farther than twelve standard
-- deviations from the mean are below 1e-30 and left out.
CREATE OR REPLACE MACRO anon._poisson_below(most, mean) AS
    CASE WHEN most < 0 THEN 0
         ELSE coalesce(list_sum(list_transform(
                  range(greatest(0, CAST(floor(mean - 12 * sqrt(mean) - 50) AS BIGINT)),
                        1 + least(CAST(most AS BIGINT), CAST(ceil(mean + 12 * sqrt(mean) + 50) AS BIGINT))),
                  lambda events: exp(events * ln(mean) - mean - lgamma(events + 1)))), 0) END;
