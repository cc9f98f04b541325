-- anon.small_classes: the classes that break k-anonymity: every combination of the columns that fewer than k rows
-- share, with its number of rows, smallest first.
--     nulls  'value': NULL is a value; 'drop': rows with a NULL in cols are left out
-- test: tests/assess/small_classes.test
CREATE OR REPLACE MACRO anon.small_classes(tbl, cols, k, nulls := 'value') AS TABLE
SELECT COLUMNS(cols), _duckanon_size AS class_size
FROM anon._classes('anon.small_classes', anon._checked_whole('anon.small_classes', 'k', k, 2, tbl), cols, nulls)
WHERE _duckanon_size < k
ORDER BY class_size ASC NULLS LAST, COLUMNS(cols) ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.small_classes IS
    'The combinations of values that fewer than k rows share, with their number of rows.';
