-- anon.label_boxes: a table with a column `box`, the number of the box of a box table (anon.box_table) that each row
-- falls into; NULL where it falls into none, or has a NULL. A row on the border of two boxes belongs to the one with
-- the smaller number.
--     tbl        name of the table whose rows are placed into boxes [a text]
--     box_table  name of the table of boxes (`anon.box_table`), or of the boxed table itself (`anon.boxes`) [a text]
--     cols       columns of intervals of the box table, which the table has as numbers or dates [a list of names]
--     by         columns of labels that the boxes were made with, which both tables have, in the same order. A row
--                falls only into boxes of its own group, or of the group that it was pooled with. NULL: the boxes have
--                no groups [a list of names, or NULL]
-- Boxes of different groups overlap. The group of a row is that of its labels; where the boxes have none, the one that
-- lost the last label, and so on, as anon.boxes pools groups. Labels are compared as texts.
-- A table that already has a column `box` is refused. An interval without an end has no bound there.
-- Boxes are found by a join on equal numbers, so that the time grows with the rows. Each column is cut into buckets at
-- places where intervals begin, about as wide as an interval is. A box lies in a few of the cells that the buckets of
-- up to four columns make, a row in one; the boxes of its cell are then compared with it.
-- promises: RowPer('row'), InvariantUnder(*TABLE)
-- test: tests/release/label_boxes.test
CREATE OR REPLACE MACRO anon.label_boxes(tbl, box_table, cols, by := NULL) AS TABLE
WITH _duckanon_boxed AS (
    SELECT *, NULL AS _duckanon_none
    FROM anon._boxed('anon.label_boxes', anon._checked_apart('anon.label_boxes', cols, ['box', 'records'],
                         anon._checked_by('anon.label_boxes', "by", cols, ['box', 'records'],
                             anon._checked('anon.label_boxes', box_table, cols))), box_table)
    WHERE anon._unless((SELECT sentence FROM anon._refused_groups('anon.label_boxes', box_table, "by")))
), _duckanon_shaped AS (
    SELECT box,
           anon._labels("by", [UNPACK({'name': lower(alias(COLUMNS(anon._group_columns("by")))),
                                       'label': CAST(COLUMNS(anon._group_columns("by")) AS VARCHAR)})])
               AS _duckanon_labels,
           struct_extract({'interval': COLUMNS(cols), 'exact': {'lo': COLUMNS(cols), 'hi': COLUMNS(cols)}},
                          anon._interval_or_exact(COLUMNS(cols)))
    FROM _duckanon_boxed
    WHERE anon._unless(anon._endless('anon.label_boxes', alias(COLUMNS(cols)), typeof(COLUMNS(cols))))
), _duckanon_boxes AS MATERIALIZED (
    SELECT DISTINCT box AS _duckanon_box, _duckanon_labels,
           list_sort([UNPACK(anon._ends(COLUMNS(cols), alias(COLUMNS(cols))))], 'ASC', 'NULLS LAST') AS _duckanon_ends
    FROM _duckanon_shaped
), _duckanon_rows AS MATERIALIZED (
    SELECT *, row_number() OVER () AS _duckanon_row,
           list_transform(list_sort([UNPACK({'name': lower(alias(COLUMNS(cols))),
                                             'number': anon._plan_number(COLUMNS(cols))})], 'ASC', 'NULLS LAST'),
                          lambda coordinate: coordinate.number) AS _duckanon_numbers,
           anon._group_of(anon._labels("by", [UNPACK({'name': lower(alias(COLUMNS(anon._group_columns("by")))),
                                                      'label': CAST(COLUMNS(anon._group_columns("by")) AS VARCHAR)})]),
                          _duckanon_groups) AS _duckanon_group
    FROM (SELECT COLUMNS(anon._user_columns(*, 'anon.label_boxes', tbl)), NULL AS _duckanon_none
          FROM query_table(anon._checked('anon.label_boxes', tbl, cols))),
         (SELECT list(DISTINCT _duckanon_labels) AS _duckanon_groups FROM _duckanon_boxes)
), _duckanon_sides AS (
    SELECT _duckanon_box, unnest(range(1, 1 + len(_duckanon_ends))) AS place, unnest(_duckanon_ends, max_depth := 2)
    FROM _duckanon_boxes
), _duckanon_edges AS MATERIALIZED (
    SELECT place, edge, row_number() OVER (PARTITION BY place ORDER BY edge ASC NULLS LAST) AS bucket
    FROM (SELECT DISTINCT place, min(lo) AS edge
          FROM (SELECT place, lo, (row_number() OVER (PARTITION BY place ORDER BY lo ASC NULLS LAST) - 1)
                                  * ceil(4 * pow(count(*) OVER (PARTITION BY place), 1 / len(cols)))::BIGINT
                                  // count(*) OVER (PARTITION BY place) AS tile
                FROM _duckanon_sides)
          GROUP BY place, tile)
), _duckanon_spans AS (
    SELECT _duckanon_box, side.place, low.bucket AS first, high.bucket AS last
    FROM _duckanon_sides AS side
         ASOF JOIN _duckanon_edges AS low ON side.place = low.place AND side.lo >= low.edge
         ASOF JOIN _duckanon_edges AS high ON side.place = high.place AND side.hi >= high.edge
), _duckanon_steps AS (             -- the four columns with the most buckets, each as wide as intervals are on average
    SELECT place, step, (pow(1 + max(most // step) OVER (), row_number() OVER (ORDER BY place ASC NULLS LAST) - 1))
                        ::BIGINT AS weight
    FROM (SELECT place, greatest(1, floor(avg(last - first)))::BIGINT AS step, max(last) AS most
          FROM _duckanon_spans GROUP BY place
          QUALIFY row_number() OVER (ORDER BY most // step DESC NULLS LAST, place ASC NULLS LAST) <= 4)
), _duckanon_corners AS (
    SELECT _duckanon_box, sum(first // step * weight) AS corner,
           list(last // step - first // step + 1 ORDER BY place ASC NULLS LAST) AS spans,
           list(weight ORDER BY place ASC NULLS LAST) AS weights
    FROM _duckanon_spans JOIN _duckanon_steps USING (place) GROUP BY _duckanon_box
), _duckanon_cells AS (             -- a box of 2 by 3 cells is numbered from 0 to 5
    SELECT _duckanon_box, corner + list_sum(list_transform(range(1, 1 + len(spans)), lambda place:
               (number // list_reduce(list_concat([1], spans[1:place - 1]), lambda a, b: a * b)) % spans[place]
               * weights[place])) AS cell
    FROM (SELECT *, unnest(range(list_reduce(spans, lambda a, b: a * b))) AS number FROM _duckanon_corners)
), _duckanon_points AS (
    SELECT _duckanon_row, sum(bucket // step * weight) AS cell
    FROM (SELECT _duckanon_row, unnest(range(1, 1 + len(_duckanon_numbers))) AS place,
                 unnest(_duckanon_numbers) AS number
          FROM _duckanon_rows) AS point
         ASOF JOIN _duckanon_edges AS edge ON point.place = edge.place AND point.number >= edge.edge
         JOIN _duckanon_steps AS step ON step.place = point.place
    GROUP BY _duckanon_row
), _duckanon_box_of_row AS (
    SELECT _duckanon_row, min(_duckanon_box) AS _duckanon_box
    FROM _duckanon_points JOIN _duckanon_cells USING (cell)
         JOIN _duckanon_boxes USING (_duckanon_box) JOIN _duckanon_rows USING (_duckanon_row)
    WHERE len(list_filter(range(1, 1 + len(_duckanon_numbers)), lambda place:
                  _duckanon_numbers[place] BETWEEN _duckanon_ends[place].lo AND _duckanon_ends[place].hi))
              = len(_duckanon_numbers)
      AND list_contains([_duckanon_labels], _duckanon_group)    -- by = DuckDB would join all boxes with all rows
    GROUP BY _duckanon_row
)
SELECT _duckanon_box_of_row._duckanon_box AS box,
       _duckanon_rows.* EXCLUDE (_duckanon_row, _duckanon_numbers, _duckanon_group, _duckanon_groups, _duckanon_none)
FROM _duckanon_rows LEFT JOIN _duckanon_box_of_row USING (_duckanon_row)
WHERE anon._checked_box_names('anon.label_boxes', tbl, NULL, 'box');
COMMENT ON MACRO TABLE anon.label_boxes IS
    'A table with the number of the box that each row falls into.';
