-- anon._refused_flattening: the sentence that refuses a boxed table with a column x_lo or x_hi beside the intervals x,
-- NULL for other tables: a table cannot have two columns of one name.
CREATE OR REPLACE MACRO anon._refused_flattening(boxed) AS TABLE
WITH _duckanon_named AS (
    SELECT list(lower(column_name)) AS names FROM anon._columns(boxed)
)
SELECT 'anon.flatten_boxes: the table must not have a column called as one of the ends of "' || any_value(column_name)
       || '", _lo and _hi; rename it first.' AS sentence
FROM anon._columns(boxed), _duckanon_named
WHERE anon._is_interval_type(column_type)
  AND (list_contains(names, lower(column_name) || '_lo') OR list_contains(names, lower(column_name) || '_hi'))
HAVING count(*) > 0;
