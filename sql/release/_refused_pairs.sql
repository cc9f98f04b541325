-- anon._refused_pairs: the sentence that refuses a table with columns x, x_lo and x_hi, NULL for other tables: nobody
-- could tell which of them is the interval.
CREATE OR REPLACE MACRO anon._refused_pairs(caller, tbl) AS TABLE
WITH _duckanon_listed AS (
    SELECT list(lower(column_name)) AS names FROM anon._columns(tbl)
)
SELECT caller || ': the table must not have a column "' || any_value(column_name)
       || '" beside two with its ends, _lo and _hi; rename it first.' AS sentence
FROM anon._columns(tbl), _duckanon_listed
WHERE list_contains(names, lower(column_name) || '_lo') AND list_contains(names, lower(column_name) || '_hi')
HAVING count(*) > 0;
