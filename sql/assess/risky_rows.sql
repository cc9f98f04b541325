-- anon.risky_rows: the rows that break k-anonymity, whole, with the size of their class in `class_size`. A table that
-- has a column of this name is refused: the result would have two columns of the same name.
--     k                     rows in classes with fewer people than this are returned [a whole number, at least 2]
--     nulls, alpha, person  as in anon.k_anonymity
-- The few small classes are joined to the table by one key: structs compare NULL with NULL as equal.
-- promises: EqualsDefinition(), InvariantUnder(*TABLE, 'types')
-- test: tests/assess/risky_rows.test
CREATE OR REPLACE MACRO anon.risky_rows(tbl, cols, k, nulls := 'value', person := NULL, alpha := 1) AS TABLE
WITH _duckanon_names AS (
    SELECT bool_and(CASE WHEN lower(column_name) = 'class_size'
                              THEN error('anon.risky_rows: the table must not have a column that is called like one of '
                                         || 'the check''s own; got ' || column_name
                                         || ', which must be renamed first.')
                         ELSE true END) AS are_apart
    FROM anon._columns(tbl)
), _duckanon_small AS (
    SELECT row(UNPACK(COLUMNS(cols))) AS _duckanon_key, _duckanon_size
    FROM anon._classes('anon.risky_rows', anon._checked_whole('anon.risky_rows', 'k', k, 2, tbl), cols, nulls,
                       person := person, alpha := alpha,
                       is_open := anon._checked_nulls('anon.risky_rows', nulls, alpha, person) = 'any')
    WHERE _duckanon_size < k AND (SELECT are_apart FROM _duckanon_names)
), _duckanon_keyed AS (
    SELECT COLUMNS(anon._user_columns(*, 'anon.risky_rows', tbl)), row(UNPACK(COLUMNS(cols))) AS _duckanon_key
    FROM query_table(anon._checked('anon.risky_rows', tbl, cols))
)
SELECT _duckanon_keyed.* EXCLUDE (_duckanon_key), _duckanon_small._duckanon_size AS class_size
FROM _duckanon_keyed JOIN _duckanon_small USING (_duckanon_key);
COMMENT ON MACRO TABLE anon.risky_rows IS
    'The rows in classes of fewer than k people, with their class size.';
