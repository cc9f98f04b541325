-- anon._stacked_meanings: what the labels of several releases hold, one row each: release, meanings
-- (anon._label_meanings).
--     releases  a MAP or STRUCT from names to tables, as in anon._stacked
CREATE OR REPLACE MACRO anon._stacked_meanings(caller, original, releases, cols, hierarchies) AS TABLE
FROM query(
    CASE WHEN anon._checked_releases(caller, releases)
         THEN anon._joined(
             list_transform(map_entries(TRY_CAST(releases AS MAP(VARCHAR, VARCHAR))), lambda entry:
                 'SELECT ' || anon._quoted(entry['key']) || ' AS release, anon._label_meanings('
                     || anon._quoted(caller) || ', ' || anon._quoted(CAST(original AS VARCHAR)) || ', '
                     || anon._quoted(entry['value']) || ', ' || anon._quoted_list(TRY_CAST(cols AS VARCHAR[])) || ', '
                     || coalesce('system.main.map('
                            || anon._quoted_list(map_keys(TRY_CAST(hierarchies AS MAP(VARCHAR, VARCHAR)))) || ', '
                            || anon._quoted_list(map_values(TRY_CAST(hierarchies AS MAP(VARCHAR, VARCHAR)))) || ')',
                            CASE WHEN hierarchies IS NULL THEN 'NULL'
                                 ELSE anon._quoted(CAST(hierarchies AS VARCHAR)) END)
                     || ') AS meanings'),
             ' UNION ALL ') END);
