-- anon._is_plain_call: whether the arguments are what they nearly always are: plain names, each once, and no collation.
-- (A step of another function is handed over in quotes.)
-- Then there is nothing to refuse; where it is false, anon._checked_groups has to look. It is a quarter of the time in
-- which DuckDB binds the checks, which callers put into a step that is not bound then.
CREATE OR REPLACE MACRO anon._is_plain_call(tbl, cols, nulls) AS
    regexp_full_match(concat_ws('|', typeof(tbl), typeof(cols), CAST(nulls AS VARCHAR),
                                current_setting('default_collation'), CAST(tbl AS VARCHAR), CAST(cols AS VARCHAR)),
                      'VARCHAR\|VARCHAR\[\]\|(value|drop)\|\|([a-zA-Z]\w*|"_duckanon_\w+")\|'
                      '\[[a-zA-Z]\w*(, [a-zA-Z]\w*)*\]')
    AND list_unique(TRY_CAST(lower(CAST(cols AS VARCHAR)) AS VARCHAR[])) = len(TRY_CAST(cols AS VARCHAR[]));
