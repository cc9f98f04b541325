-- anon._numbered_boxes: the boxes of a boxed table, the chosen columns of each, its number and its records.
CREATE OR REPLACE MACRO anon._numbered_boxes(caller, boxed, cols) AS TABLE
SELECT any_value(COLUMNS(cols)), box AS _duckanon_box, count(*) AS _duckanon_size
FROM query_table(anon._checked(caller, boxed, cols))
GROUP BY box;
