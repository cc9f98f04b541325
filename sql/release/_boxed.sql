-- anon._boxed: a boxed table, of either shape (anon._intervals), with the number of the box as `box`; a table that has
-- none is refused in a sentence of ours. The column _duckanon_none is empty.
--     tbl, own_tbl  as in anon._intervals
CREATE OR REPLACE MACRO anon._boxed(caller, tbl, own_tbl) AS TABLE
WITH _duckanon_shaped AS (
    SELECT *, NULL AS _duckanon_none FROM anon._intervals(caller, tbl, own_tbl)
)
SELECT COLUMNS(lambda name: lower(name) <> 'box'),
       coalesce(*COLUMNS(lambda name: lower(name) = 'box' OR name = '_duckanon_none')) AS box
FROM _duckanon_shaped
WHERE anon._unless((SELECT caller || ': the table must have a column "box" with the number of the box, as anon.boxes '
                           || 'makes it; got none.'
                    FROM anon._columns(own_tbl) HAVING count(*) FILTER (lower(column_name) = 'box') = 0));
