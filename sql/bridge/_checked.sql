-- anon._checked: the name of the table, after a look at the two arguments that nearly every function takes. It is used
-- inside query_table(), which is bound before anything else of a macro, so that a wrong argument is answered with one
-- sentence instead of whatever the first step to stumble over it would say. Callers hand over checks of other arguments
-- as the table, which would be bound seven times if the lambda did not name it.
CREATE OR REPLACE MACRO anon._checked(caller, tbl, cols) AS
    list_transform([tbl], lambda given: anon._checked_table(caller, 'tbl', given,
        CASE WHEN ends_with(typeof(cols), ']') AND len(TRY_CAST(cols AS VARCHAR[])) = 0
                  THEN error(caller || ': cols must name at least one column; got an empty list.')
             WHEN NOT regexp_full_match(typeof(cols), 'VARCHAR\[\d*\]')
                  THEN error(anon._must_be(caller, 'cols', 'a list of column names such as [''age'', ''zip'']', cols))
             WHEN len(list_filter(TRY_CAST(cols AS VARCHAR[]), lambda named: named IS NULL)) > 0
                  THEN error(caller || ': cols must be a list of column names; got a NULL among them.')
             WHEN len(list_distinct(list_transform(TRY_CAST(cols AS VARCHAR[]), lambda named: lower(named))))
                  < len(TRY_CAST(cols AS VARCHAR[]))
                  THEN error(caller || ': cols must name each column once; got ' || CAST(cols AS VARCHAR) || '.')
             ELSE CAST(given AS VARCHAR) END))[1];
