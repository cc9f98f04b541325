-- anon._checked_sensitive: the name of the table, after a look at what it is grouped by and at the sensitive column.
CREATE OR REPLACE MACRO anon._checked_sensitive(caller, tbl, cols, sensitive, nulls) AS
    anon._checked_name(caller, 'sensitive', 'one column', sensitive,
        CASE WHEN anon._is_among(CAST(sensitive AS VARCHAR), cols)
                  THEN error(caller || ': sensitive must not be one of cols; got ' || CAST(sensitive AS VARCHAR) || '.')
             ELSE anon._checked_groups(caller, tbl, cols, nulls) END);
