-- anon._recode_shape: the columns `cols` of a table without rows, in the types of anon._release_shape, but text where
-- they have a hierarchy; before each kind one that nobody asked for, since DuckDB answers a choice of no column with a
-- message of its own.
CREATE OR REPLACE MACRO anon._recode_shape(tbl, cols, hierarchies) AS TABLE
SELECT CAST(COLUMNS(lambda name: name = '_duckanon_no_tree'
                                 OR (anon._is_among(name, cols) AND anon._is_among(name, anon._map_names(hierarchies))))
            AS VARCHAR),
       COLUMNS(lambda name: name = '_duckanon_no_plain'
                            OR (anon._is_among(name, cols) AND NOT anon._is_among(name, anon._map_names(hierarchies))))
FROM (SELECT NULL::VARCHAR AS _duckanon_no_tree, NULL::VARCHAR AS _duckanon_no_plain, *
      FROM anon._release_shape(tbl, ''));
