-- anon._stacked: the chosen columns of several tables below each other; `_duckanon_release` says which table a row is
-- from. Each table has a column of its own, in which its rows are structs: the same column may hold numbers in one
-- table, labels or intervals in another. An unknown number of tables is read by a UNION ALL that is put together for
-- query() when the call is bound.
--     releases  a MAP or STRUCT from names to tables: MAP {'swapped': 'svd', 'clusters': 'pica'}
CREATE OR REPLACE MACRO anon._stacked(caller, releases, cols) AS TABLE
FROM query(
    CASE WHEN anon._checked_releases(caller, releases) AND anon._checked(caller, 'releases', cols) IS NOT NULL
         THEN anon._joined(
             list_transform(map_entries(TRY_CAST(releases AS MAP(VARCHAR, VARCHAR))), lambda entry, place:
                 'SELECT ' || anon._quoted(entry['key']) || ' AS _duckanon_release, system.main.struct_pack(*COLUMNS('
                           || anon._quoted_list(TRY_CAST(cols AS VARCHAR[])) || ')) AS _duckanon_row_' || place
                           || ' FROM system.main.query_table(' || anon._quoted(entry['value']) || ')'),
             ' UNION ALL BY NAME ') END);
