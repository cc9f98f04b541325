-- anon._with_columns: two lists of columns as one.
CREATE OR REPLACE MACRO anon._with_columns(cols, other_cols) AS
    list_concat(TRY_CAST(cols AS VARCHAR[]), TRY_CAST(other_cols AS VARCHAR[]));
