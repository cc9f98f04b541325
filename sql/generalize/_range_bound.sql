-- anon._range_bound: the place-th bound of the ranges that begin at `origin` and are `step` wide, as the double nearest
-- to the decimal number: 3 * 0.1 is 0.3, not 0.30000000000000004. (Adding 0 turns -0 into 0.)
--     ranges  a struct of origin, step and digits, which they have after the decimal point
CREATE OR REPLACE MACRO anon._range_bound(place, ranges) AS
    round(ranges.origin + place * ranges.step, ranges.digits) + 0.0::DOUBLE;
