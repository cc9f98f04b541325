-- anon.risky_rows: the rows that break k-anonymity, whole, with the size of their class in `class_size`.
--     nulls  'value': NULL is a value; 'drop': rows with a NULL in cols are not looked at
-- The few small classes are joined to the table by one key: structs compare NULL with NULL as equal.
-- test: tests/assess/risky_rows.test
CREATE OR REPLACE MACRO anon.risky_rows(tbl, cols, k, nulls := 'value') AS TABLE
WITH _duckanon_small AS (
    SELECT row(UNPACK(COLUMNS(cols))) AS _duckanon_key, class_size
    FROM (SELECT COLUMNS(cols), _duckanon_size AS class_size
          FROM anon._classes('anon.risky_rows', anon._checked_whole('anon.risky_rows', 'k', k, 2, tbl), cols, nulls)
          WHERE _duckanon_size < k)
), _duckanon_keyed AS (
    SELECT *, row(UNPACK(COLUMNS(cols))) AS _duckanon_key FROM query_table(anon._checked('anon.risky_rows', tbl, cols))
)
SELECT _duckanon_keyed.* EXCLUDE (_duckanon_key), _duckanon_small.class_size
FROM _duckanon_keyed JOIN _duckanon_small USING (_duckanon_key);
COMMENT ON MACRO TABLE anon.risky_rows IS
    'The rows whose combination of values fewer than k rows share, with their class size.';
