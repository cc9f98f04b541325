-- anon._plan_cells: a table with every value beside its bucket in a plan: each column a struct of `value`, `number` and
-- `bucket` (NULL: the plan has none for it). Each step works on all columns at once, and meets the plan's lists anew:
-- as columns of their own they stay one value for a block of rows, and no step carries those that it does not need.
-- Columns that are called like steps of ours are left out: nobody can name them (anon._checked_names).
--     lists  the name of a step, anon._plan_lookup
CREATE OR REPLACE MACRO anon._plan_cells(caller, tbl, lists) AS TABLE
WITH _duckanon_source AS (
    SELECT COLUMNS(lambda name: NOT anon._is_own_name(name)) FROM query_table(anon._checked(caller, tbl, ['*']))
    WHERE anon._uncollated(caller, COLUMNS(*))
), _duckanon_started AS (
    SELECT anon._plan_start(COLUMNS(_cells.*),
                            _lists.is_number[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                            _lists.is_text[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                            _lists.letters[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)])
    FROM _duckanon_source AS _cells, query_table(lists) AS _lists
), _duckanon_keyed AS (             -- what is looked up in the grid: the number, or that of the text's hash
    SELECT struct_pack(value := (COLUMNS(_cells.*)).value, number := (COLUMNS(_cells.*)).number,
                       "text" := (COLUMNS(_cells.*)).text,
                       key := CASE WHEN _lists.is_number[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)]
                                        THEN (COLUMNS(_cells.*)).number
                                   WHEN _lists.is_hashed[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)]
                                        THEN CAST(hash((COLUMNS(_cells.*)).text) AS DOUBLE) END)
    FROM _duckanon_started AS _cells, query_table(lists) AS _lists
), _duckanon_based AS (
    SELECT anon._plan_base(COLUMNS(_cells.*),
                           _lists.crowd[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                           _lists.grid,
                           _lists.grid_first[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                           _lists.origin[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                           _lists.ceiling[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                           _lists.scale[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                           _lists.shift[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                           _lists.last_cell[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                           _lists.is_text[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                           _lists.first[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)])
    FROM _duckanon_keyed AS _cells, query_table(lists) AS _lists
), _duckanon_found AS (
    SELECT anon._plan_bucket(COLUMNS(_cells.*),
                             _lists.crowd[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                             _lists.numbers,
                             _lists.texts,
                             _lists.steps[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                             _lists.last[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                             _lists.is_text[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)])
    FROM _duckanon_based AS _cells, query_table(lists) AS _lists
)
SELECT anon._plan_match(COLUMNS(_cells.*),
                        _lists.texts,
                        _lists.is_number[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                        _lists.is_hashed[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                        _lists.is_prefix[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                        _lists.is_text[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                        _lists.first[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)])
FROM _duckanon_found AS _cells, query_table(lists) AS _lists;
