-- anon._plan_cell: the cell of an even grid that a number falls into; numbers beyond its ends, infinity and NaN (which
-- is above all numbers in DuckDB) fall into the first or the last. Rounded as it may be, a larger number never falls
-- into an earlier cell, which is all that the search needs. (CAST rounds, so that a grid has a cell at both ends.)
CREATE OR REPLACE MACRO anon._plan_cell(number, origin, ceiling, scale, shift, last_cell) AS
    CASE WHEN number < origin THEN 0
         WHEN number >= ceiling THEN last_cell
         ELSE CAST(number * scale - shift AS INTEGER) END;
