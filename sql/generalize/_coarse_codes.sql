-- anon._coarse_codes: the rows of a table as a plan releases them, with the labels of `cols` as numbers
-- (anon._plan_labels), which are counted, compared and sorted faster than texts, and take less memory:
-- `_duckanon_class`, a struct of them, `_duckanon_person`, who it is, `_duckanon_sensitive`, what else is known of him,
-- and `_duckanon_kept`, a struct of the columns to keep, with one more, `_duckanon_none`.
--     keep, person, sensitive  as in anon._kept_cells
CREATE OR REPLACE MACRO anon._coarse_codes(caller, tbl, cols, plan, keep, person, sensitive) AS TABLE
WITH _duckanon_packed AS (
    SELECT struct_extract(COLUMNS(cols), 'code'), COLUMNS([coalesce(person, '_duckanon_none')]) AS _duckanon_person,
           COLUMNS([coalesce(sensitive, '_duckanon_none')]) AS _duckanon_sensitive,
           struct_pack(*COLUMNS(lambda name: anon._is_kept(name, cols, keep, person))) AS _duckanon_kept
    FROM anon._labelled_cells(caller, tbl, plan)
), _duckanon_rows AS (
    SELECT struct_pack(*COLUMNS(* EXCLUDE (_duckanon_kept, _duckanon_person, _duckanon_sensitive))) AS _duckanon_class,
           struct_pack(person := _duckanon_person.value, sensitive := _duckanon_sensitive.value) AS _duckanon_whose,
           unnest(_duckanon_kept)
    FROM _duckanon_packed
), _duckanon_values AS (
    SELECT _duckanon_class, _duckanon_whose,
           anon._released_value(COLUMNS(* EXCLUDE (_duckanon_class, _duckanon_whose)))
    FROM _duckanon_rows
)
SELECT _duckanon_class, _duckanon_whose.person AS _duckanon_person, _duckanon_whose.sensitive AS _duckanon_sensitive,
       struct_pack(*COLUMNS(* EXCLUDE (_duckanon_class, _duckanon_whose))) AS _duckanon_kept
FROM _duckanon_values;
