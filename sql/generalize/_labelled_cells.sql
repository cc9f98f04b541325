-- anon._labelled_cells: a table with every cell as a struct: `value` as it is, and `label` and `code` where the plan
-- has its column (anon._plan_release); and `_duckanon_none`, a cell of nothing, for those who ask for no column.
CREATE OR REPLACE MACRO anon._labelled_cells(caller, tbl, plan) AS TABLE
WITH _duckanon_lookup AS MATERIALIZED (
    FROM anon._plan_lookup(caller, tbl, plan)
)
SELECT anon._plan_release(COLUMNS(_cells.*), anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names) IS NOT NULL,
                          _lists.null_label[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                          _lists.rest_label[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)], _lists.labels,
                          _lists.null_code[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)],
                          _lists.rest_code[anon._plan_place(alias(COLUMNS(_cells.*)), _lists.names)], _lists.codes),
       struct_pack(value := NULL::VARCHAR, label := NULL::VARCHAR, code := NULL::INTEGER) AS _duckanon_none
FROM anon._plan_cells(caller, tbl, '_duckanon_lookup') AS _cells, _duckanon_lookup AS _lists;
