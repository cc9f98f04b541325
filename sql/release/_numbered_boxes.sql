-- anon._numbered_boxes: the boxes of a boxed table, one row each: its intervals in the chosen columns, its number and
-- how many records it has.
-- needs: python
CREATE OR REPLACE MACRO anon._numbered_boxes(caller, boxed, cols) AS TABLE
WITH _duckanon_chosen AS (
    SELECT COLUMNS(_anon_choose(*, caller, boxed, {'cols': cols})), box AS _duckanon_box
    FROM anon._boxed(caller, boxed, boxed)
)
SELECT CASE WHEN bool_or(COLUMNS(cols) IS NULL) OR count(DISTINCT COLUMNS(cols)) > 1
                 THEN error(caller || ': a box must have one interval in each column; number '
                                   || any_value(_duckanon_box) || ' has none or several.')
            ELSE any_value(COLUMNS(cols)) END, _duckanon_box, count(*) AS _duckanon_size
FROM _duckanon_chosen
GROUP BY _duckanon_box;
