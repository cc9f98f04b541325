-- anon._plan_cell: the cell of an even grid that a number falls into; numbers beyond its ends, infinity and NaN (which
-- is above all numbers in DuckDB) fall into the first or the last.
CREATE OR REPLACE MACRO anon._plan_cell(number, origin, scale, cells) AS
    CAST(least(greatest((number - origin) * scale, 0), cells - 1) AS INTEGER);
