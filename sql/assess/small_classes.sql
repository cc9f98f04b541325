-- anon.small_classes: the classes that break k-anonymity: every combination of the columns that fewer than k people
-- share, with its number of people, smallest first.
--     nulls   'value': NULL is a value; 'drop': rows with a NULL in cols are left out; 'any': NULL matches anything,
--             and the size of a class is the number of rows that it matches
--     alpha   with 'any', how much a match counts that another row's NULL allows, from 0 to 1
--     person  name of the column that says whose row it is: sizes then count different people, and a row whose person
--             is NULL counts as nobody. NULL: every row is a person
-- test: tests/assess/small_classes.test
CREATE OR REPLACE MACRO anon.small_classes(tbl, cols, k, nulls := 'value', person := NULL, alpha := 1) AS TABLE
SELECT COLUMNS(cols), _duckanon_size AS class_size
FROM anon._classes('anon.small_classes',
                   anon._checked_whole('anon.small_classes', 'k', k, 2,
                       anon._checked_apart('anon.small_classes', cols, ['class_size'], tbl)),
                   cols, anon._checked_nulls('anon.small_classes', nulls, alpha, person), person := person,
                   alpha := alpha)
WHERE _duckanon_size < k
ORDER BY _duckanon_size ASC NULLS LAST, COLUMNS(cols) ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.small_classes IS
    'The combinations of values that fewer than k rows share, with their number of rows.';
