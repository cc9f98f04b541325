-- anon._checked_sensitive: the name of the table, after a look at what a check of a sensitive column takes.
CREATE OR REPLACE MACRO anon._checked_sensitive(caller, tbl, cols, sensitive, nulls, person) AS
    anon._checked_person(caller, person, cols,
        CASE WHEN lower(CAST(person AS VARCHAR)) = lower(CAST(sensitive AS VARCHAR))
                  THEN error(caller || ': person must not be the sensitive column; got ' || CAST(person AS VARCHAR)
                             || '.')
             ELSE anon._checked_name(caller, 'sensitive', 'one column', sensitive,
                      CASE WHEN anon._is_among(CAST(sensitive AS VARCHAR), cols)
                                THEN error(caller || ': sensitive must not be one of cols; got '
                                           || CAST(sensitive AS VARCHAR) || '.')
                           ELSE anon._checked_groups(caller, tbl, cols, nulls) END) END);
