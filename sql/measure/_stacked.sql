-- anon._stacked: the chosen columns of several tables below each other; `_duckanon_release` says which table a row is
-- from. Each table has a column of its own, in which its rows are structs: the same column may hold numbers in one
-- table, labels or intervals in another. An unknown number of tables is read by a UNION ALL that is put together for
-- query() when the call is bound.
--     releases  a MAP or STRUCT from names to tables: MAP {'swapped': 'svd', 'clusters': 'pica'}
CREATE OR REPLACE MACRO anon._stacked(caller, releases, cols) AS TABLE
FROM query(
    CASE WHEN anon._checked_releases(caller, releases) AND anon._checked(caller, 'releases', cols) IS NOT NULL
         THEN anon._joined(
             list_transform(range(1, 1 + len(map_keys(anon._release_map(releases)))), lambda place:
                 'SELECT ' || anon._quoted(map_keys(anon._release_map(releases))[place]) || ' AS _duckanon_release, '
                           || 'system.main.struct_pack(*COLUMNS(' || anon._quoted_list(TRY_CAST(cols AS VARCHAR[]))
                           || ')) AS _duckanon_row_' || place || ' FROM system.main.query_table('
                           || anon._quoted(map_values(anon._release_map(releases))[place]) || ')'),
             ' UNION ALL BY NAME ') END);
