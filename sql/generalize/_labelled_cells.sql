-- anon._labelled_cells: a table with every cell as a struct: `value` as it is, and `label` where the plan has its
-- column; and `_duckanon_none`, a cell of nothing, for those who ask for no column.
CREATE OR REPLACE MACRO anon._labelled_cells(caller, tbl, plan) AS TABLE
SELECT anon._plan_label(COLUMNS(* EXCLUDE (_duckanon_lists)), _duckanon_lists),
       struct_pack(value := NULL::VARCHAR, label := NULL::VARCHAR) AS _duckanon_none
FROM anon._plan_cells(caller, tbl, plan);
