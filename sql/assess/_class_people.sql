-- anon._class_people: how many different people are in each class, the class as one value: structs compare NULL with
-- NULL as equal. Without `person` there is no row: the cells of a class then say how many rows it has.
CREATE OR REPLACE MACRO anon._class_people(caller, tbl, cols, nulls, person) AS TABLE
SELECT struct_pack(*COLUMNS(cols)) AS class, _duckanon_size AS people
FROM anon._classes(caller, tbl, cols, nulls, person := person)
WHERE person IS NOT NULL;
