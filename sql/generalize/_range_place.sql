-- anon._range_place: which of the ranges holds a value, seen from the origin. A division is off by one at a bound now
-- and then (0.3 / 0.1 is below 3), so that its result is compared with the bounds that the label shows. A step of 0 is
-- refused elsewhere, but constants are divided before that, and may fail.
CREATE OR REPLACE MACRO anon._range_place(value, step, origin) AS
    floor((value - origin) / nullif(step, 0))
    + CASE WHEN value >= anon._range_bound(floor((value - origin) / nullif(step, 0)) + 1, step, origin) THEN 1
           WHEN value < anon._range_bound(floor((value - origin) / nullif(step, 0)), step, origin) THEN -1
           ELSE 0 END;
