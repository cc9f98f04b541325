-- anon._table_columns: the columns of several linked tables, each once, those of the first table first.
CREATE OR REPLACE MACRO anon._table_columns(by, linked) AS
    list_concat(TRY_CAST("by" AS VARCHAR[]), list_sort(list_distinct(list_filter(
        flatten(coalesce(TRY_CAST(linked AS VARCHAR[][]), CAST([] AS VARCHAR[][]))),
        lambda named: NOT anon._is_among(named, "by"))), 'ASC', 'NULLS LAST'));
