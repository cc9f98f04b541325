-- anon.column_profile: what each column discloses to an attacker, in one pass over the table. A column with as many
-- values as rows identifies people; one whose largest class is most of the table discloses little.
--     kind             numeric, date, text, boolean or other
--     distinct_values  different values, NULL not counted, by a code of 64 bits: exact for numbers of at most 64
--                      bits, dates and booleans; for text and other types it may be one too low with a probability of
--                      about n^2 / 2^65 (1 in 370,000 for ten million different texts)
--     largest_class    rows that share the most frequent value, NULL not counted
--     tbl              name of the table or view [a text]
-- promises: RowPer('column'), EqualsDefinition(), InvariantUnder('order', 'storage', 'columns')
-- test: tests/assess/column_profile.test
CREATE OR REPLACE MACRO anon.column_profile(tbl) AS TABLE
WITH _duckanon_nothing AS (
    SELECT 0 AS row_count
), _duckanon_first AS MATERIALIZED (
    FROM anon._profiled_columns(tbl, 0, 4, '_duckanon_nothing')
), _duckanon_second AS MATERIALIZED (
    FROM anon._profiled_columns(tbl, 1, 4, '_duckanon_first')
), _duckanon_third AS MATERIALIZED (
    FROM anon._profiled_columns(tbl, 2, 4, '_duckanon_second')
), _duckanon_fourth AS MATERIALIZED (
    FROM anon._profiled_columns(tbl, 3, 4, '_duckanon_third')
), _duckanon_profile AS (
    FROM _duckanon_first UNION ALL FROM _duckanon_second
    UNION ALL FROM _duckanon_third UNION ALL FROM _duckanon_fourth
), _duckanon_named AS (
    SELECT column_name, column_type, place AS table_place, hash(column_name) % 4 AS part,
           row_number() OVER (PARTITION BY hash(column_name) % 4 ORDER BY place ASC NULLS LAST) AS place
    FROM anon._columns(anon._checked('anon.column_profile', tbl, ['*']))
)
SELECT column_name, column_type, anon._kind(column_type) AS kind,
       coalesce(row_count, 0)::BIGINT AS "rows", coalesce(nulls, 0)::BIGINT AS nulls,
       coalesce(distinct_values, 0) AS distinct_values, coalesce(largest_class, 0) AS largest_class
FROM _duckanon_named LEFT JOIN _duckanon_profile USING (part, place)
ORDER BY table_place ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.column_profile IS
    'One row per column: type, kind, rows, NULLs, distinct values and the size of the largest class.';
