-- anon.label_boxes: a table with the number of the box of a box table (anon.box_table) that each row falls into, in
-- `box`; NULL where it falls into none, or has a NULL. A row on the border of two boxes goes to the one with the
-- smaller number.
--     cols  the columns of intervals of the box table, which the table has as numbers or dates
-- Boxes are found by a range join on the first two columns, in alphabetical order: the time goes with the rows times
-- the boxes that overlap in them.
-- test: tests/release/label_boxes.test
CREATE OR REPLACE MACRO anon.label_boxes(tbl, box_table, cols) AS TABLE
WITH _duckanon_boxes AS MATERIALIZED (
    SELECT box AS _duckanon_box, _duckanon_ends[1].lo AS lo, _duckanon_ends[1].hi AS hi,
           coalesce(_duckanon_ends[2].lo, 0) AS next_lo, coalesce(_duckanon_ends[2].hi, 0) AS next_hi, _duckanon_ends[3:] AS others
    FROM (SELECT box, list_sort([UNPACK(anon._ends(COLUMNS(cols), alias(COLUMNS(cols))))]) AS _duckanon_ends
          FROM query_table(anon._checked('anon.label_boxes', box_table, cols)))
), _duckanon_rows AS MATERIALIZED (
    SELECT *, row_number() OVER () AS _duckanon_row,
           list_sort([UNPACK(anon._named_number(COLUMNS(cols), alias(COLUMNS(cols))))]) AS _duckanon_numbers
    FROM query_table(anon._checked('anon.label_boxes', tbl, cols))
), _duckanon_points AS (
    SELECT _duckanon_row, _duckanon_numbers[1].number AS x, _duckanon_numbers[3:] AS others,
           CASE WHEN len(_duckanon_numbers) > 1 THEN _duckanon_numbers[2].number ELSE 0 END AS y
    FROM _duckanon_rows
), _duckanon_found AS (
    SELECT _duckanon_row, min(_duckanon_box) AS _duckanon_box
    FROM _duckanon_points AS p
         JOIN _duckanon_boxes AS b ON p.x >= b.lo AND p.x <= b.hi AND p.y >= b.next_lo AND p.y <= b.next_hi
    WHERE len(p.others) = 0
       OR len(list_filter(p.others, lambda one, i: one.number BETWEEN b.others[i].lo AND b.others[i].hi)) = len(p.others)
    GROUP BY _duckanon_row
)
SELECT _duckanon_found._duckanon_box AS box, _duckanon_rows.* EXCLUDE (_duckanon_row, _duckanon_numbers)
FROM _duckanon_rows LEFT JOIN _duckanon_found USING (_duckanon_row);
COMMENT ON MACRO TABLE anon.label_boxes IS
    'A table with the number of the box that each row falls into.';
