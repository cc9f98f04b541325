-- anon._wanted_columns: the columns of a table that a release needs: `_duckanon_cols`, a struct of those to generalize,
-- `_duckanon_person` and `_duckanon_sensitive`, NULL where none is named, and the columns to keep, as they may be
-- released (anon._released_value), with one more, `_duckanon_none`.
-- needs: python
CREATE OR REPLACE MACRO anon._wanted_columns(caller, tbl, cols, keep, person, sensitive) AS TABLE
WITH _duckanon_named AS NOT MATERIALIZED (
    SELECT struct_pack(*COLUMNS(cols)) AS _duckanon_cols,
           COLUMNS([coalesce(person, '_duckanon_none')]) AS _duckanon_person,
           COLUMNS([coalesce(sensitive, '_duckanon_none')]) AS _duckanon_sensitive,
           anon._released_value(struct_pack(value := COLUMNS(list_concat(coalesce(keep, []), ['_duckanon_none']))))
    FROM (SELECT COLUMNS(_anon_choose(*, caller, tbl, {'cols': cols, 'keep': keep, 'person': person,
                                                       'sensitive': sensitive})),
                 NULL::VARCHAR AS _duckanon_none
          FROM query_table(tbl))
    WHERE anon._uncollated(caller, COLUMNS(* EXCLUDE (_duckanon_none)))
), _duckanon_all AS NOT MATERIALIZED (
    SELECT struct_pack(*COLUMNS(cols)) AS _duckanon_cols,
           COLUMNS([coalesce(person, '_duckanon_none')]) AS _duckanon_person,
           COLUMNS([coalesce(sensitive, '_duckanon_none')]) AS _duckanon_sensitive,
           anon._released_value(struct_pack(value := COLUMNS(lambda name: anon._is_kept(name, cols, keep, person))))
    FROM (SELECT COLUMNS(lambda name: anon._is_among(name, list_concat(cols, [person, sensitive]))
                                      OR anon._is_kept(name, cols, keep, person)),
                 NULL::VARCHAR AS _duckanon_none
          FROM query_table(tbl))
    WHERE anon._uncollated(caller, COLUMNS(* EXCLUDE (_duckanon_none)))
)
FROM query_table(CASE WHEN list_contains(TRY_CAST(keep AS VARCHAR[]), '*') THEN '_duckanon_all'
                      ELSE '_duckanon_named' END);
