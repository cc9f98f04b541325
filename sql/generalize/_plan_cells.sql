-- anon._plan_cells: a table with every value beside its bucket in a plan: each column a struct of `x` the value, `c`
-- where the plan keeps the column (NULL: not planned), `n` its number, `b` its bucket (NULL: the plan has none for it);
-- and `_duckanon_p`, the plan's lists. One step a stage, each over all columns at once.
CREATE OR REPLACE MACRO anon._plan_cells(caller, tbl, plan) AS TABLE
WITH _duckanon_lookup AS MATERIALIZED (
    SELECT struct_pack(*COLUMNS(*)) AS _duckanon_p FROM anon._plan_lookup(caller, tbl, plan)
), _duckanon_columns AS (
    SELECT struct_pack(x := COLUMNS(_t.*), c := _duckanon_p.columns[list_position(_duckanon_p.names, lower(alias(COLUMNS(_t.*))))]),
           _duckanon_p
    FROM query_table(anon._checked(caller, tbl, ['*'])) AS _t, _duckanon_lookup
), _duckanon_started AS (
    SELECT anon._plan_start(COLUMNS(* EXCLUDE (_duckanon_p))), _duckanon_p FROM _duckanon_columns
), _duckanon_based AS (
    SELECT anon._plan_base(COLUMNS(* EXCLUDE (_duckanon_p)), _duckanon_p), _duckanon_p FROM _duckanon_started
), _duckanon_found AS (
    SELECT anon._plan_bucket(COLUMNS(* EXCLUDE (_duckanon_p)), _duckanon_p), _duckanon_p FROM _duckanon_based
)
SELECT anon._plan_match(COLUMNS(* EXCLUDE (_duckanon_p)), _duckanon_p), _duckanon_p FROM _duckanon_found;
