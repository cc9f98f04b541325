-- anon._plan_cell: the cell of an even grid that a number falls into; numbers beyond its ends, infinity and NaN (which
-- is above all numbers in DuckDB) fall into the first or the last. (What lies before the grid is asked for first: a
-- grid with one beginning has the scale 0, and 0 times minus infinity is NaN.)
CREATE OR REPLACE MACRO anon._plan_cell(number, origin, scale, cells) AS
    CASE WHEN number < origin THEN 0
         ELSE CAST(least(greatest((number - origin) * scale, 0), cells - 1) AS INTEGER) END;
