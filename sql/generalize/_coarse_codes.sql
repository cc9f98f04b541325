-- anon._coarse_codes: the rows of a table as a plan releases them, with the labels of `cols` as numbers
-- (anon._plan_lookup), which are counted, compared and sorted faster than texts, and take less memory:
-- `_duckanon_class`, a struct of them, and `_duckanon_others`, what travels with them.
--     others  the name of a column; '_duckanon_none': none
CREATE OR REPLACE MACRO anon._coarse_codes(caller, tbl, cols, plan, others) AS TABLE
WITH _duckanon_codes AS (
    SELECT struct_extract(COLUMNS(cols), 'code'), struct_extract(COLUMNS([others]), 'value') AS _duckanon_others
    FROM anon._labelled_cells(caller, tbl, plan)
)
SELECT struct_pack(*COLUMNS(* EXCLUDE (_duckanon_others))) AS _duckanon_class, _duckanon_others FROM _duckanon_codes;
