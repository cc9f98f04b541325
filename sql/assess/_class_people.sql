-- anon._class_people: some classes with their values, as one struct: structs compare NULL with NULL as equal; and with
-- the number of different people in them, NULL without `person`: the cells of a class then say how many rows it has.
-- The columns are only read here, where no step of the checks has added one of its own.
--     wanted  name of a step with the hashes of the classes, as anon._sensitive_members has them
CREATE OR REPLACE MACRO anon._class_people(tbl, cols, nulls, person, wanted) AS TABLE
WITH _duckanon_of_rows AS (
    SELECT hash(*COLUMNS(cols)) AS class, any_value(struct_pack(*COLUMNS(cols))) AS named, NULL::BIGINT AS people
    FROM query_table(tbl)
    WHERE (nulls = 'value' OR COLUMNS(cols) IS NOT NULL)
          AND hash(*COLUMNS(cols)) IN (SELECT class FROM query_table(wanted))
    GROUP BY ALL
), _duckanon_of_people AS (
    SELECT hash(*COLUMNS(cols)) AS class, any_value(struct_pack(*COLUMNS(cols))) AS named,
           count(DISTINCT COLUMNS([person])) AS people
    FROM query_table(tbl)
    WHERE (nulls = 'value' OR COLUMNS(cols) IS NOT NULL)
          AND hash(*COLUMNS(cols)) IN (SELECT class FROM query_table(wanted))
    GROUP BY ALL
)
FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_of_rows' ELSE '_duckanon_of_people' END);
