-- anon._range_bound: the place-th bound of the ranges that begin at `origin` and are `step` wide, as the double nearest
-- to the decimal number: 3 * 0.1 is 0.3, not 0.30000000000000004. (Adding 0 turns -0 into 0.)
CREATE OR REPLACE MACRO anon._range_bound(place, step, origin) AS
    round(origin + place * step, greatest(anon._decimals(step), anon._decimals(origin))) + 0.0::DOUBLE;
