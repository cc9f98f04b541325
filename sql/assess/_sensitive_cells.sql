-- anon._sensitive_cells: how often each sensitive value occurs in each class: the class's hash, the value, and how many
-- rows or, with `person`, different people have it there; 0 where no row says whose it is.
--     members  name of a step with the rows of anon._sensitive_members
CREATE OR REPLACE MACRO anon._sensitive_cells(members, person) AS TABLE
WITH _cells_of_people AS (
    SELECT class, value, count(member) AS size FROM query_table(members) GROUP BY class, value
), _cells_of_rows AS (
    SELECT class, value, size FROM query_table(members)
)
FROM query_table(CASE WHEN person IS NULL THEN '_cells_of_rows' ELSE '_cells_of_people' END);
