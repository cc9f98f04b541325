-- anon.column_profile: what each column discloses to an attacker, in one pass over the table. A column with as many
-- values as rows identifies people; one whose largest class is most of the table discloses little.
--     kind             numeric, date, text, boolean or other
--     distinct_values  different values, NULL not counted, by their 64-bit hash: exact for numbers, dates and booleans;
--                      for text it may be one too low with a probability of about n^2 / 2^65 (1 in 370,000 for ten
--                      million different texts)
--     largest_class    rows that share the most frequent value, NULL not counted
--     tbl              name of the table or view [a text]
-- test: tests/assess/column_profile.test
CREATE OR REPLACE MACRO anon.column_profile(tbl) AS TABLE
WITH _duckanon_codes AS (        -- a NULL stays NULL, everything else becomes its hash
    SELECT CASE WHEN COLUMNS(*) IS NOT NULL THEN hash(COLUMNS(*)) END
    FROM query_table(tbl)
), _duckanon_cells AS (           -- one row a cell: the column's place and the value's code
    SELECT unnest(range(1, 1 + len(row_codes))) AS place, unnest(row_codes) AS code
    FROM (SELECT [UNPACK(COLUMNS(*))] AS row_codes FROM _duckanon_codes)
), _duckanon_classes AS (
    SELECT place, code, count(*) AS size FROM _duckanon_cells GROUP BY ALL
), _duckanon_profile AS (
    SELECT place, sum(size) AS row_count, sum(size) FILTER (code IS NULL) AS nulls, count(code) AS distinct_values,
           max(size) FILTER (code IS NOT NULL) AS largest_class
    FROM _duckanon_classes GROUP BY place
)
SELECT column_name, column_type, anon._kind(column_type) AS kind,
       coalesce(row_count, 0)::BIGINT AS "rows", coalesce(nulls, 0)::BIGINT AS nulls,
       coalesce(distinct_values, 0) AS distinct_values, coalesce(largest_class, 0) AS largest_class
FROM anon._columns(anon._checked('anon.column_profile', tbl, ['*'])) LEFT JOIN _duckanon_profile USING (place)
ORDER BY place ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.column_profile IS
    'One row per column: type, kind, rows, NULLs, distinct values and the size of the largest class.';
