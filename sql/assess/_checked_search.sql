-- anon._checked_search: the table's name, after the arguments of a search over column sets were looked at; cols may be
-- NULL, for all columns.
CREATE OR REPLACE MACRO anon._checked_search(caller, tbl, cols, max_size, alpha) AS
    CASE WHEN TRY_CAST(alpha AS DOUBLE) > 0 AND TRY_CAST(alpha AS DOUBLE) < 1
         THEN anon._checked_whole(caller, 'max_size', max_size, 1,
                  CASE WHEN cols IS NULL THEN anon._checked(caller, tbl, ['*']) ELSE anon._checked(caller, tbl, cols) END)
         ELSE error(caller || ': alpha must be between 0 and 1, both excluded; got '
                           || coalesce(CAST(alpha AS VARCHAR), 'NULL') || '.') END;
