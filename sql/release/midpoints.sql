-- anon.midpoints: a boxed table with every interval replaced by its midpoint, under the column's own name: numbers as
-- DOUBLE, dates and timestamps as TIMESTAMP, with a time zone where the intervals have one. All other columns stay as
-- they are.
--     boxed  name of a table of intervals, such as `anon.boxes` returns [a text]
-- Midpoints are for tools that do not know intervals: their statistics carry no guarantee. Intervals with an open end
-- have no midpoint and are refused.
-- promises: RowPer('row'), InvariantUnder('order', 'storage', 'columns')
-- test: tests/release/midpoints.test
CREATE OR REPLACE MACRO anon.midpoints(boxed) AS TABLE
WITH _duckanon_known AS (
    FROM anon._intervals_in_place('anon.midpoints', anon._checked('anon.midpoints', boxed, ['*']), boxed)
), _duckanon_cells AS (             -- a step of its own, so that intervals are told from other values once
    SELECT struct_pack(value := COLUMNS(*),
                       ends := struct_extract({'interval': COLUMNS(*), 'exact': {'lo': NULL, 'hi': NULL}},
                                              anon._interval_or_exact(COLUMNS(*))))
    FROM _duckanon_known
)
SELECT struct_extract(
           {'exact': (COLUMNS(*)).value,
            'number': anon._middle(anon._plan_number((COLUMNS(*)).ends.lo), anon._plan_number((COLUMNS(*)).ends.hi)),
            'time': make_timestamp(
                        CAST(epoch_us(TRY_CAST((COLUMNS(*)).ends.lo AS TIMESTAMP)) AS BIGINT)
                        + (CAST(epoch_us(TRY_CAST((COLUMNS(*)).ends.hi AS TIMESTAMP)) AS BIGINT)
                           - CAST(epoch_us(TRY_CAST((COLUMNS(*)).ends.lo AS TIMESTAMP)) AS BIGINT)) // 2),
            'zoned': to_timestamp(0) + to_microseconds(
                         CAST(epoch_us(TRY_CAST((COLUMNS(*)).ends.lo AS TIMESTAMPTZ)) AS BIGINT)
                         + (CAST(epoch_us(TRY_CAST((COLUMNS(*)).ends.hi AS TIMESTAMPTZ)) AS BIGINT)
                            - CAST(epoch_us(TRY_CAST((COLUMNS(*)).ends.lo AS TIMESTAMPTZ)) AS BIGINT)) // 2)},
           CASE WHEN anon._interval_or_exact((COLUMNS(*)).value) = 'exact' THEN 'exact'
                WHEN contains(typeof((COLUMNS(*)).value), 'TIME ZONE') THEN 'zoned'
                WHEN regexp_matches(typeof((COLUMNS(*)).value), ' (DATE|TIMESTAMP)') THEN 'time' ELSE 'number' END)
FROM _duckanon_cells
WHERE anon._unless(CASE WHEN anon._interval_or_exact((COLUMNS(*)).value) = 'interval'
                             AND (COLUMNS(*)).ends IS NOT NULL
                             AND ((COLUMNS(*)).ends.lo IS NULL OR (COLUMNS(*)).ends.hi IS NULL)
                        THEN 'anon.midpoints: column "' || alias(COLUMNS(*)) || '" has intervals with an open end, '
                             || 'which have no midpoint; leave these records out.' END);
COMMENT ON MACRO TABLE anon.midpoints IS
    'A boxed table with every interval replaced by its midpoint, for tools that do not know intervals.';
