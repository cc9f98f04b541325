-- anon._classes: the equivalence classes of a table: one row per combination of values that occurs, with its number of
-- rows. GROUP BY ALL groups by the plain columns, which is as fast as a GROUP BY written by hand; one struct of them
-- would take half as long again.
--     nulls  'value': NULL is a value, equal to itself; 'drop': rows with a NULL in one of the columns are left out
CREATE OR REPLACE MACRO anon._classes(caller, tbl, cols, nulls) AS TABLE
SELECT COLUMNS(cols), count(*) AS _duckanon_size
FROM query_table(anon._checked_choice(caller, 'nulls', nulls, ['value', 'drop'], anon._checked(caller, tbl, cols)))
WHERE nulls = 'value' OR COLUMNS(cols) IS NOT NULL
GROUP BY ALL;
