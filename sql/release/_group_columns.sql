-- anon._group_columns: the columns that are grouped by, and one of our own, so that there is one where `by` is NULL.
CREATE OR REPLACE MACRO anon._group_columns(by) AS
    list_concat(coalesce(TRY_CAST("by" AS VARCHAR[]), []), ['_duckanon_none']);
