-- anon._stacked: the chosen columns of several tables below each other; `_duckanon_release` says which table a row is
-- from. An unknown number of tables is read by a UNION ALL that is put together for query() when the call is bound.
--     releases  a MAP or STRUCT from names to tables: MAP {'swapped': 'svd', 'clusters': 'pica'}
CREATE OR REPLACE MACRO anon._stacked(caller, releases, cols) AS TABLE
FROM query(
    CASE WHEN releases IS NULL OR NOT regexp_matches(typeof(releases), '^(MAP|STRUCT)\(')
              OR coalesce(cardinality(TRY_CAST(releases AS MAP(VARCHAR, VARCHAR))), 0) = 0
              THEN error(anon._must_be(caller, 'releases',
                                       'a map from names to tables such as MAP {''swapped'': ''svd''}', releases))
         ELSE array_to_string(
             list_transform(map_entries(TRY_CAST(releases AS MAP(VARCHAR, VARCHAR))), lambda entry:
                 'SELECT ' || anon._quoted(entry['key']) || ' AS _duckanon_release, COLUMNS(['
                           || array_to_string(list_transform(cols, lambda column_name: anon._quoted(column_name)), ', ')
                           || ']) FROM query_table(' || anon._quoted(entry['value']) || ')'),
             ' UNION ALL BY NAME ') END);
