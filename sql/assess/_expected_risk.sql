-- anon._expected_risk: the expected 1/F for a class of `size` rows, F the number of people in the population who share
-- its values, when every person is in the table with probability p, whoever they are: F is then negative binomial
-- (Benedetti and Franconi 1998, the estimator of mu-Argus). With f = size and c = (1 - p) / p it is the integral of
-- v^(f - 1) / (1 + c v) from 0 to 1, I_f:
--     small classes, small p   from that of 1 <= f < 2 by I_f = (1 / (f - 1) - I_(f - 1)) / c, written as a sum. Of one
--                              row it is ln(1/p) / c; of between one and two, where NULLs count as parts of a match, it
--                              is computed by Simpson's rule, with v = (exp(u) - 1) / c and u = ln(1/p) t^3
--     others                   p / f times the sum over j of (1 - p)^j / C(f + j, j), cut where it has thirteen digits
CREATE OR REPLACE MACRO anon._expected_risk(size, p) AS
    CASE WHEN p < 0.5 AND size < 6 AND size <> floor(size)
              THEN pow(p / (p - 1), floor(size) - 1) * p / (1 - p) * -ln(p)
                   * list_sum(list_transform(range(257), lambda place:
                         CASE WHEN place IN (0, 256) THEN 1 WHEN place % 2 = 1 THEN 4 ELSE 2 END
                         * pow(place / 256, 2)
                         * pow((exp(-ln(p) * pow(place / 256, 3)) - 1) * p / (1 - p), size - floor(size)))) / 256
                   - coalesce(list_sum(list_transform(range(1, CAST(floor(size) AS BIGINT)), lambda step:
                         pow(p / (p - 1), floor(size) - step) / (step + size - floor(size)))), 0)
         ELSE anon._expected_whole_risk(size, p) END;
