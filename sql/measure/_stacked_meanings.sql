-- anon._stacked_meanings: what the labels of several releases hold, one row each: release, meanings
-- (anon._label_meanings).
--     releases  a MAP or STRUCT from names to tables, as in anon._stacked
CREATE OR REPLACE MACRO anon._stacked_meanings(caller, original, releases, cols, hierarchies) AS TABLE
FROM query(
    CASE WHEN anon._checked_releases(caller, releases)
         THEN array_to_string(
             list_transform(map_entries(TRY_CAST(releases AS MAP(VARCHAR, VARCHAR))), lambda entry:
                 'SELECT ' || anon._quoted(entry['key']) || ' AS release, anon._label_meanings('
                     || anon._quoted(caller) || ', ' || anon._quoted(CAST(original AS VARCHAR)) || ', '
                     || anon._quoted(entry['value']) || ', ['
                     || array_to_string(list_transform(TRY_CAST(cols AS VARCHAR[]),
                                                       lambda column_name: anon._quoted(column_name)), ', ')
                     || '], ' || coalesce('MAP {' || array_to_string(list_transform(
                            map_entries(TRY_CAST(hierarchies AS MAP(VARCHAR, VARCHAR))), lambda tree:
                                anon._quoted(tree['key']) || ': ' || anon._quoted(tree['value'])), ', ') || '}',
                            CASE WHEN hierarchies IS NULL THEN 'NULL'
                                 ELSE anon._quoted(CAST(hierarchies AS VARCHAR)) END)
                     || ') AS meanings'),
             ' UNION ALL ') END);
