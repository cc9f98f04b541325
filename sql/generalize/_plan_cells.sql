-- anon._plan_cells: a table with every value beside its bucket in a plan: each column a struct of `value`, `planned`
-- (where the plan keeps the column; NULL: not planned), `number` and `bucket` (NULL: the plan has none for it); and
-- `_duckanon_lists`, the plan's lists. Each step works on all columns at once. Columns that are called like steps of
-- ours are left out: nobody can name them (anon._checked_names).
CREATE OR REPLACE MACRO anon._plan_cells(caller, tbl, plan) AS TABLE
WITH _duckanon_lookup AS MATERIALIZED (
    SELECT struct_pack(*COLUMNS(*)) AS _duckanon_lists FROM anon._plan_lookup(caller, tbl, plan)
), _duckanon_columns AS (
    SELECT struct_pack(value := COLUMNS(_duckanon_source.*),
                       planned := _duckanon_lists.columns[list_position(_duckanon_lists.names,
                                                                        lower(alias(COLUMNS(_duckanon_source.*))))]),
           _duckanon_lists
    FROM (SELECT COLUMNS(lambda name: NOT anon._is_own_name(name))
          FROM query_table(anon._checked(caller, tbl, ['*']))
          WHERE anon._uncollated(caller, COLUMNS(*))) AS _duckanon_source, _duckanon_lookup
), _duckanon_started AS (
    SELECT anon._plan_start(COLUMNS(* EXCLUDE (_duckanon_lists))), _duckanon_lists FROM _duckanon_columns
), _duckanon_based AS (
    SELECT anon._plan_base(COLUMNS(* EXCLUDE (_duckanon_lists)), _duckanon_lists), _duckanon_lists
    FROM _duckanon_started
), _duckanon_found AS (
    SELECT anon._plan_bucket(COLUMNS(* EXCLUDE (_duckanon_lists)), _duckanon_lists), _duckanon_lists
    FROM _duckanon_based
)
SELECT anon._plan_match(COLUMNS(* EXCLUDE (_duckanon_lists)), _duckanon_lists), _duckanon_lists FROM _duckanon_found;
