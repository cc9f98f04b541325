-- anon._numbered_boxes: the boxes of a boxed table, one row each: its intervals in the chosen columns, its number and
-- how many records it has.
CREATE OR REPLACE MACRO anon._numbered_boxes(caller, boxed, cols) AS TABLE
SELECT CASE WHEN bool_or(COLUMNS(cols) IS NULL) OR count(DISTINCT COLUMNS(cols)) > 1
                 THEN error(caller || ': a box must have one interval in each column; number ' || any_value(box)
                                   || ' has none or several.')
            ELSE any_value(COLUMNS(cols)) END, box AS _duckanon_box, count(*) AS _duckanon_size
FROM anon._boxed(caller, anon._checked(caller, boxed, cols), boxed)
GROUP BY box;
