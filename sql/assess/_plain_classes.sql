-- anon._plain_classes: the equivalence classes of a table, counted by rows, NULL as a value, where there is nothing to
-- refuse (anon._is_plain_call) but a collation. GROUP BY ALL groups by the plain columns, which is as fast as a GROUP
-- BY written by hand; one struct of them would take half as long again.
--     _duckanon_size  how many rows are in the class
CREATE OR REPLACE MACRO anon._plain_classes(caller, tbl, cols) AS TABLE
SELECT COLUMNS(cols), count(*) AS _duckanon_size
FROM query_table(tbl)
WHERE anon._all_uncollated(caller, cols, concat_ws('', UNPACK(CAST(COLUMNS(cols) AS VARCHAR))))
GROUP BY ALL;
