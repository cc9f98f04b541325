-- anon._chance_of_any: 1 - exp(-x), the probability of any event where x are expected, also where it is tiny: below
-- 1e-5 the first two terms of the series have sixteen digits right, and the difference would have fewer.
CREATE OR REPLACE MACRO anon._chance_of_any(expected) AS
    CASE WHEN expected < 1e-5 THEN expected * (1 - expected / 2) ELSE 1 - exp(-expected) END;
