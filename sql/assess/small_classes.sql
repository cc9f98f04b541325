-- anon.small_classes: the classes that break k-anonymity: every combination of the columns that fewer than k people
-- share, with its number of people, smallest first.
--     k                     classes with fewer people than this are returned [a whole number, at least 2]
--     nulls, alpha, person  as in anon.k_anonymity
-- promises: EqualsDefinition(), CountsPeople('class_size'), InvariantUnder(*TABLE, 'types')
-- test: tests/assess/small_classes.test
CREATE OR REPLACE MACRO anon.small_classes(tbl, cols, k, nulls := 'value', person := NULL, alpha := 1) AS TABLE
SELECT COLUMNS(cols), _duckanon_size AS class_size
FROM anon._classes('anon.small_classes',
                   anon._checked_whole('anon.small_classes', 'k', k, 2,
                       anon._checked_apart('anon.small_classes', cols, ['class_size'], tbl)),
                   cols, nulls, person := person, alpha := alpha,
                   is_open := anon._checked_nulls('anon.small_classes', nulls, alpha, person) = 'any')
WHERE _duckanon_size < k
ORDER BY _duckanon_size ASC NULLS LAST, COLUMNS(cols) ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.small_classes IS
    'The classes of fewer than k people, with their values and sizes.';
