-- anon._refused_ends: the sentence that refuses columns without ends: all must hold intervals, numbers or times; NULL
-- where they do.
CREATE OR REPLACE MACRO anon._refused_ends(caller, tbl, cols) AS TABLE
SELECT caller || ': column "' || any_value(column_name) || '" must hold intervals STRUCT(lo, hi), as anon.boxes makes '
       || 'them, or numbers or times; got ' || any_value(column_type) || '.' AS sentence
FROM anon._columns(tbl)
WHERE anon._is_among(column_name, cols) AND NOT anon._is_interval_type(column_type)
  AND anon._kind(column_type) NOT IN ('numeric', 'date')
HAVING count(*) > 0;
