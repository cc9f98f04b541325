-- anon.midpoints: a boxed table with every interval replaced by its midpoint, under the column's own name: numbers as
-- DOUBLE, dates and timestamps as TIMESTAMP, with a time zone where the intervals have one. All other columns stay as
-- they are.
--     boxed  name of a table of intervals, such as `anon.boxes` returns [a text]
-- Midpoints are for tools that do not know intervals: their statistics carry no guarantee. Intervals with an open end
-- have no midpoint and are refused.
-- test: tests/release/midpoints.test
CREATE OR REPLACE MACRO anon.midpoints(boxed) AS TABLE
WITH _duckanon_known AS (
    FROM anon._intervals_in_place('anon.midpoints', anon._checked('anon.midpoints', boxed, ['*']), boxed)
)
SELECT struct_extract(
           {'exact': COLUMNS(*),
            'number': anon._middle_number(struct_extract({'interval': COLUMNS(*), 'exact': {'lo': NULL, 'hi': NULL}},
                                                         anon._interval_or_exact(COLUMNS(*)))),
            'time': anon._middle_time(struct_extract({'interval': COLUMNS(*), 'exact': {'lo': NULL, 'hi': NULL}},
                                                     anon._interval_or_exact(COLUMNS(*)))),
            'zoned': anon._middle_zoned(struct_extract({'interval': COLUMNS(*), 'exact': {'lo': NULL, 'hi': NULL}},
                                                       anon._interval_or_exact(COLUMNS(*))))},
           CASE WHEN NOT anon._is_interval_type(typeof(COLUMNS(*))) THEN 'exact'
                WHEN contains(typeof(COLUMNS(*)), 'TIME ZONE') THEN 'zoned'
                WHEN regexp_matches(typeof(COLUMNS(*)), ' (DATE|TIMESTAMP)') THEN 'time' ELSE 'number' END)
FROM _duckanon_known
WHERE anon._unless(anon._open_end(struct_extract({'interval': COLUMNS(*), 'exact': {'lo': 0, 'hi': 0}},
                                                 anon._interval_or_exact(COLUMNS(*))), alias(COLUMNS(*))));
COMMENT ON MACRO TABLE anon.midpoints IS
    'A boxed table with every interval replaced by its midpoint, for tools that do not know intervals.';
