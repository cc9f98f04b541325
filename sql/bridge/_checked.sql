-- anon._checked: the table's name, after the arguments that nearly every function takes were looked at. Used inside
-- query_table(), which is bound before anything else of a macro, so that a wrong argument is answered with one sentence
-- instead of whatever the first step to stumble over it would say.
CREATE OR REPLACE MACRO anon._checked(caller, tbl, cols) AS
    CASE WHEN tbl IS NULL OR typeof(tbl) <> 'VARCHAR'
              THEN error(caller || ': tbl must be the name of a table, a view or a CTE, in quotes; got '
                                || coalesce(CAST(tbl AS VARCHAR), 'NULL') || '.')
         WHEN ends_with(typeof(cols), ']') AND len(TRY_CAST(cols AS VARCHAR[])) = 0
              THEN error(caller || ': cols must name at least one column; got an empty list.')
         WHEN NOT regexp_full_match(typeof(cols), 'VARCHAR\[\d*\]')
              THEN error(caller || ': cols must be a list of column names such as [''age'', ''zip'']; got '
                                || coalesce(CAST(cols AS VARCHAR), 'NULL') || '.')
         WHEN len(list_filter(TRY_CAST(cols AS VARCHAR[]), lambda c: c IS NULL)) > 0
              THEN error(caller || ': cols must be a list of column names; got a NULL among them.')
         WHEN len(list_distinct(list_transform(TRY_CAST(cols AS VARCHAR[]), lambda c: lower(c))))
              < len(TRY_CAST(cols AS VARCHAR[]))
              THEN error(caller || ': cols must name each column once; got ' || CAST(cols AS VARCHAR) || '.')
         ELSE CAST(tbl AS VARCHAR) END;
