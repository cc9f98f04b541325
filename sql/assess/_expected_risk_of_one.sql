-- anon._expected_risk_of_one: the integral of anon._expected_risk for a class of one row, ln(1/p) / c, or of between
-- one and two, where NULLs count as parts of a match: Simpson's rule, with v = (exp(u) - 1) / c and u = ln(1/p) t^3.
CREATE OR REPLACE MACRO anon._expected_risk_of_one(size, p) AS
    p / (1 - p) * -ln(p)
    * CASE WHEN size = 1 THEN 1
           ELSE list_sum(list_transform(range(257), lambda place:
                    CASE WHEN place IN (0, 256) THEN 1 WHEN place % 2 = 1 THEN 4 ELSE 2 END * pow(place / 256, 2)
                    * pow((exp(-ln(p) * pow(place / 256, 3)) - 1) * p / (1 - p), size - 1))) / 256 END;
