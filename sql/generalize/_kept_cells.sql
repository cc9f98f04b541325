-- anon._kept_cells: the rows of a table as a plan releases them: `_duckanon_labels`, the labels of all columns as a
-- struct (NULL where a column is not planned), `_duckanon_person`, who it is, `_duckanon_sensitive`, what else is known
-- of him, and the columns to keep, as they may be released (anon._released_value).
--     keep, person  as in anon._is_kept
CREATE OR REPLACE MACRO anon._kept_cells(caller, tbl, cols, plan, keep, person, sensitive) AS TABLE
WITH _duckanon_packed AS (
    SELECT *, COLUMNS([coalesce(person, '_duckanon_none')]) AS _duckanon_person,
           COLUMNS([coalesce(sensitive, '_duckanon_none')]) AS _duckanon_sensitive,
           struct_pack(*COLUMNS(lambda name: anon._is_kept(name, cols, keep, person))) AS _duckanon_kept
    FROM anon._labelled_cells(caller, tbl, plan)
), _duckanon_labels AS (
    SELECT struct_extract(COLUMNS(* EXCLUDE (_duckanon_kept, _duckanon_none, _duckanon_person, _duckanon_sensitive)),
                          'label'),
           _duckanon_kept, _duckanon_person, _duckanon_sensitive
    FROM _duckanon_packed
), _duckanon_rows AS (
    SELECT struct_pack(*COLUMNS(* EXCLUDE (_duckanon_kept, _duckanon_person, _duckanon_sensitive)))
               AS _duckanon_labels,
           struct_pack(person := _duckanon_person, sensitive := _duckanon_sensitive) AS _duckanon_whose,
           unnest(_duckanon_kept)
    FROM _duckanon_labels
)
SELECT _duckanon_labels, _duckanon_whose.person.value AS _duckanon_person,
       _duckanon_whose.sensitive.value AS _duckanon_sensitive,
       anon._released_value(COLUMNS(* EXCLUDE (_duckanon_labels, _duckanon_whose)))
FROM _duckanon_rows;
