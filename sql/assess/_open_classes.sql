-- anon._open_classes: the classes of anon._classes, where NULL matches anything: `_duckanon_size` is the number of rows
-- that a class matches, those of other classes included, `_duckanon_rows` its own.
--     alpha  how much a match counts that another class's NULLs allow, from 0 to 1 (anon._matching_classes)
CREATE OR REPLACE MACRO anon._open_classes(caller, tbl, cols, alpha) AS TABLE
WITH _duckanon_values AS MATERIALIZED (
    SELECT COLUMNS(cols), hash(*COLUMNS(cols)) AS _duckanon_key, count(*) AS _duckanon_rows
    FROM query_table(anon._checked_groups(caller, tbl, cols, 'value'))
    WHERE anon._uncollated(caller, COLUMNS(cols))
    GROUP BY ALL
), _duckanon_coded AS (
    SELECT CASE WHEN COLUMNS(cols) IS NOT NULL THEN hash(COLUMNS(cols)) END, _duckanon_key, _duckanon_rows
    FROM _duckanon_values
), _duckanon_records AS (
    SELECT _duckanon_key AS class, _duckanon_rows AS row_count, NULL::DOUBLE AS stands_for,
           [UNPACK(COLUMNS(lambda named: named NOT IN ('_duckanon_key', '_duckanon_rows')))] AS codes
    FROM _duckanon_coded
), _duckanon_matches AS (
    FROM anon._matching_classes('_duckanon_records', alpha)
)
SELECT COLUMNS(cols), _duckanon_size, _duckanon_rows, NULL::UBIGINT AS _duckanon_anyone
FROM _duckanon_values                          -- rounded, so that sums of tenths in another order are the same size
     JOIN (SELECT class AS _duckanon_key, round(frequency, 9) AS _duckanon_size FROM _duckanon_matches)
     USING (_duckanon_key);
