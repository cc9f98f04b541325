-- anon._is_plain_sensitive: anon._is_plain_call with a sensitive column, which must not be one of the others.
CREATE OR REPLACE MACRO anon._is_plain_sensitive(tbl, cols, sensitive, nulls) AS
    typeof(sensitive) = 'VARCHAR' AND anon._is_plain_call(tbl, cols, nulls)
    AND NOT contains(lower(CAST(cols AS VARCHAR)), lower(CAST(sensitive AS VARCHAR)));
