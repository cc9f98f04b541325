-- anon._expected_whole_risk: anon._expected_risk for classes of whole numbers of people, which binds in half the time.
CREATE OR REPLACE MACRO anon._expected_whole_risk(size, p) AS
    CASE WHEN p < 0.5 AND size < 6
              THEN pow(p / (p - 1), size - 1) * p / (1 - p) * -ln(p)
                   - coalesce(list_sum(list_transform(range(1, CAST(size AS BIGINT)), lambda step:
                         pow(p / (p - 1), size - step) / step)), 0)
         ELSE p / size * list_sum(list_transform(range(least(400, greatest(24, CAST(2400 / size AS BIGINT)))),
                  lambda unseen:
                  pow(1 - p, unseen) * exp(lgamma(unseen + 1) + lgamma(size + 1) - lgamma(size + unseen + 1)))) END;
