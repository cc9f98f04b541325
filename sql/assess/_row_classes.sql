-- anon._row_classes: the equivalence classes of a table, counted by rows: anon._classes without `person`. GROUP BY ALL
-- groups by the plain columns, which is as fast as a GROUP BY written by hand; one struct of them would take half as
-- long again.
--     nulls           'value': NULL is a value, equal to itself; 'drop': rows with a NULL in a column are left out
--     _duckanon_size  how many rows are in the class
CREATE OR REPLACE MACRO anon._row_classes(caller, tbl, cols, nulls) AS TABLE
WITH _duckanon_checked AS NOT MATERIALIZED (
    FROM query_table(anon._checked_groups(caller, tbl, cols, nulls)) WHERE nulls = 'value' OR COLUMNS(cols) IS NOT NULL
)
SELECT COLUMNS(cols), count(*) AS _duckanon_size
FROM query_table(CASE WHEN nulls = 'value' AND anon._is_plain_call(tbl, cols, nulls) THEN CAST(tbl AS VARCHAR)
                      ELSE '_duckanon_checked' END)
WHERE anon._all_uncollated(caller, cols, concat_ws('', UNPACK(CAST(COLUMNS(cols) AS VARCHAR))))
GROUP BY ALL;
