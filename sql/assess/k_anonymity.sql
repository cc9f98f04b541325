-- anon.k_anonymity: how many rows share each combination of the columns, at the least, and how many rows share theirs
-- with too few others.
--     k               the size of the smallest class
--     rows_under_2 .. rows_under_20   rows in classes of fewer than so many
--     nulls           'value': NULL is a value; 'drop': rows with a NULL in cols are left out
-- The classes that are too small: anon.small_classes; their rows: anon.risky_rows.
-- test: tests/assess/k_anonymity.test
CREATE OR REPLACE MACRO anon.k_anonymity(tbl, cols, nulls := 'value') AS TABLE
SELECT anon._checked_rows('anon.k_anonymity', count(*), min(_duckanon_size)) AS k,
       count(*) AS classes, sum(_duckanon_size)::BIGINT AS "rows",
       count(*) FILTER (_duckanon_size = 1) AS singletons,
       coalesce(sum(_duckanon_size) FILTER (_duckanon_size < 2), 0)::BIGINT AS rows_under_2,
       coalesce(sum(_duckanon_size) FILTER (_duckanon_size < 3), 0)::BIGINT AS rows_under_3,
       coalesce(sum(_duckanon_size) FILTER (_duckanon_size < 5), 0)::BIGINT AS rows_under_5,
       coalesce(sum(_duckanon_size) FILTER (_duckanon_size < 10), 0)::BIGINT AS rows_under_10,
       coalesce(sum(_duckanon_size) FILTER (_duckanon_size < 20), 0)::BIGINT AS rows_under_20
FROM anon._classes('anon.k_anonymity', tbl, cols, nulls);
COMMENT ON MACRO TABLE anon.k_anonymity IS
    'The k of a table: its smallest class, and how many rows are in classes under 2, 3, 5, 10 and 20.';
