-- anon.label_boxes: a table with a column `box`, the number of the box of a box table (anon.box_table) that each row
-- falls into; NULL where it falls into none, or has a NULL. A row on the border of two boxes goes to the one with the
-- smaller number.
--     cols  the columns of intervals of the box table, which the table has as numbers or dates
-- A table that has a column `box` already is refused.
-- Boxes are found by a range join on the first two columns, in alphabetical order: the time grows with the rows times
-- the boxes that overlap in these two columns.
-- test: tests/release/label_boxes.test
CREATE OR REPLACE MACRO anon.label_boxes(tbl, box_table, cols) AS TABLE
WITH _duckanon_boxed AS (
    FROM anon._boxed('anon.label_boxes', anon._checked_apart('anon.label_boxes', cols, ['box', 'records'],
                         anon._checked('anon.label_boxes', box_table, cols)), box_table)
), _duckanon_shaped AS (
    SELECT box, struct_extract({'interval': COLUMNS(cols), 'exact': {'lo': COLUMNS(cols), 'hi': COLUMNS(cols)}},
                               anon._interval_or_exact(COLUMNS(cols)))
    FROM _duckanon_boxed
    WHERE anon._unless(anon._endless('anon.label_boxes', alias(COLUMNS(cols)), typeof(COLUMNS(cols))))
), _duckanon_boxes AS MATERIALIZED (
    SELECT box AS _duckanon_box, _duckanon_ends[1].lo AS lo, _duckanon_ends[1].hi AS hi,
           coalesce(_duckanon_ends[2].lo, 0) AS next_lo, coalesce(_duckanon_ends[2].hi, 0) AS next_hi,
           _duckanon_ends[3:len(_duckanon_ends)] AS others
    FROM (SELECT box, list_sort([UNPACK(anon._ends(COLUMNS(cols), alias(COLUMNS(cols))))],
                                'ASC', 'NULLS LAST') AS _duckanon_ends
          FROM _duckanon_shaped)
), _duckanon_rows AS MATERIALIZED (
    SELECT *, row_number() OVER () AS _duckanon_row,
           list_sort([UNPACK(anon._named_number(COLUMNS(cols), alias(COLUMNS(cols))))],
                     'ASC', 'NULLS LAST') AS _duckanon_numbers
    FROM query_table(anon._checked('anon.label_boxes', tbl, cols))
), _duckanon_points AS (
    SELECT _duckanon_row, _duckanon_numbers[1].number AS number, _duckanon_numbers[3:len(_duckanon_numbers)] AS others,
           CASE WHEN len(_duckanon_numbers) > 1 THEN _duckanon_numbers[2].number ELSE 0 END AS next_number
    FROM _duckanon_rows
), _duckanon_box_of_row AS (
    SELECT _duckanon_row, min(_duckanon_box) AS _duckanon_box
    FROM _duckanon_points AS point
         JOIN _duckanon_boxes AS box ON point.number >= box.lo AND point.number <= box.hi
                                    AND point.next_number >= box.next_lo AND point.next_number <= box.next_hi
    WHERE len(point.others) = 0
       OR len(list_filter(point.others, lambda coordinate, place:
                          coordinate.number BETWEEN box.others[place].lo AND box.others[place].hi)) = len(point.others)
    GROUP BY _duckanon_row
)
SELECT _duckanon_box_of_row._duckanon_box AS box, _duckanon_rows.* EXCLUDE (_duckanon_row, _duckanon_numbers)
FROM _duckanon_rows LEFT JOIN _duckanon_box_of_row USING (_duckanon_row)
WHERE anon._checked_box_names('anon.label_boxes', tbl, NULL, 'box');
COMMENT ON MACRO TABLE anon.label_boxes IS
    'A table with the number of the box that each row falls into.';
