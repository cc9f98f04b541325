-- anon._is_among: whether a column is one of those that were named, in upper or lower case.
CREATE OR REPLACE MACRO anon._is_among(column_name, cols) AS
    list_contains(list_transform(TRY_CAST(cols AS VARCHAR[]), lambda named: lower(named)), lower(column_name));
