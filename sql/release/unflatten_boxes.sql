-- anon.unflatten_boxes: a boxed table from one with two columns x_lo and x_hi for each interval, as anon.flatten_boxes
-- returns it: each such pair becomes one column x of intervals, a STRUCT(lo, hi), in its place. All other columns stay
-- as they are. A NULL end means that the interval is open.
--     tbl  name of a table with pairs of columns `x_lo` and `x_hi` [a text]
-- A table that has a column x beside both is refused.
-- promises: RowPer('row'), InvariantUnder('order', 'storage', 'columns')
-- test: tests/release/unflatten_boxes.test
CREATE OR REPLACE MACRO anon.unflatten_boxes(tbl) AS TABLE
FROM anon._intervals_in_place('anon.unflatten_boxes', anon._checked('anon.unflatten_boxes', tbl, ['*']), tbl);
COMMENT ON MACRO TABLE anon.unflatten_boxes IS
    'A boxed table from one with two columns for each interval, x_lo and x_hi.';
