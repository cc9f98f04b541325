-- anon._unique_cells: the distinct rows of a table as the search for minimal uniques takes them: the hash of each
-- column's value, NULL for NULL, and the columns of anon._classes, with the hash of all columns as the cell's name.
CREATE OR REPLACE MACRO anon._unique_cells(caller, tbl, cols, person) AS TABLE
SELECT CASE WHEN COLUMNS(cols) IS NOT NULL THEN hash(COLUMNS(cols)) END, hash(*COLUMNS(cols)) AS _duckanon_class,
       _duckanon_size, _duckanon_rows, _duckanon_anyone
FROM anon._classes(caller, tbl, cols, 'value', person := person);
