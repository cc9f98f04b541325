-- anon._plan_start: a cell with what its bucket is looked up by: `x` the value, `c` where the plan keeps its column
-- (NULL: not planned), `n` its number or `t` its text, whichever the plan goes by. (The casts stand outside the CASE:
-- inside it DuckDB computes them for every row.)
CREATE OR REPLACE MACRO anon._plan_start(cell) AS
    struct_pack(x := cell.x, c := cell.c, n := anon._plan_number(CASE WHEN cell.c.is_number THEN cell.x END),
                t := CAST(CASE WHEN cell.c.is_text THEN cell.x END AS VARCHAR));
