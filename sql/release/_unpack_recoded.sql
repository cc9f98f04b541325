-- anon._unpack_recoded: the lists that anon.recode got back from Python, turned into rows: `cols` as labels, as
-- intervals or as lists of values, and the columns to keep, in the types of anon._release_shape. The empty sides of the
-- joins bring the names and types. Labels come once each, with a list of codes that tells which one every row has. One
-- of the two steps for labels is read: which is known when the query is bound, and the other leaves no trace in the
-- plan.
-- needs: python
CREATE OR REPLACE MACRO anon._unpack_recoded(result, tbl, cols, kept, hierarchies, output) AS TABLE
WITH _duckanon_result AS (
    SELECT result AS _duckanon_released LIMIT 1
), _duckanon_shape AS (             -- text where there is a hierarchy; DuckDB refuses a choice of no column
    SELECT CAST(COLUMNS(lambda name:
                    name = '_duckanon_no_tree'
                    OR (anon._is_among(name, cols)
                        AND anon._is_among(name, map_keys(TRY_CAST(hierarchies AS MAP(VARCHAR, VARCHAR))))))
                AS VARCHAR),
           COLUMNS(lambda name: name = '_duckanon_no_plain'
                                OR (anon._is_among(name, cols)
                                    AND anon._is_among(name, map_keys(TRY_CAST(hierarchies AS MAP(VARCHAR, VARCHAR))))
                                        IS NOT TRUE))
    FROM (SELECT NULL::VARCHAR AS _duckanon_no_tree, NULL::VARCHAR AS _duckanon_no_plain, *
          FROM anon._release_shape(tbl, ''))
), _duckanon_typed AS (
    SELECT COLUMNS(cols) FROM _duckanon_shape
), _duckanon_coarse AS (
    FROM anon._release_shape(tbl, cols)
), _duckanon_others AS (
    FROM query_table(kept) LIMIT 0
), _duckanon_texts AS (
    SELECT anon._released(_duckanon_result._duckanon_released, alias(COLUMNS(_duckanon_coarse.*))).s AS '\0',
           _duckanon_released
    FROM _duckanon_result LEFT JOIN _duckanon_coarse ON true
), _duckanon_values AS (
    SELECT anon._recoded(_duckanon_result._duckanon_released, alias(COLUMNS(_duckanon_typed.*)),
                         COLUMNS(_duckanon_typed.*)) AS '\0',
           _duckanon_released
    FROM _duckanon_result LEFT JOIN _duckanon_typed ON true
)
SELECT * EXCLUDE (_duckanon_none)
FROM (SELECT list_extract(COLUMNS(cols),
                          unnest(anon._released(_duckanon_labels._duckanon_released, alias(COLUMNS(cols))).c)) AS '\0',
             unnest(anon._slot(_duckanon_labels._duckanon_released, alias(COLUMNS(_duckanon_others.*)),
                               COLUMNS(_duckanon_others.*))) AS '\0'
      FROM query_table(CASE WHEN output = 'text' THEN '_duckanon_texts' ELSE '_duckanon_values' END) AS _duckanon_labels
           LEFT JOIN _duckanon_others ON true);
