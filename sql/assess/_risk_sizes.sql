-- anon._risk_sizes: all that matters about the classes to an attacker: for each size of a class, how many rows are in
-- classes of this size, and how many people have no smaller class than that. Without `person` the two are the same.
CREATE OR REPLACE MACRO anon._risk_sizes(caller, tbl, cols, nulls, person) AS TABLE
WITH _duckanon_by_rows AS (
    SELECT _duckanon_size AS class_size, sum(_duckanon_size)::BIGINT AS people, sum(_duckanon_size)::BIGINT AS row_count
    FROM anon._classes(caller, tbl, cols, nulls)
    GROUP BY _duckanon_size
), _duckanon_members AS MATERIALIZED (
    FROM anon._hashed_members(caller, tbl, cols, nulls, person)
), _duckanon_hashed AS MATERIALIZED (
    SELECT class, count(member) AS class_size, sum(row_count) AS row_count FROM _duckanon_members GROUP BY class
), _duckanon_smallest AS (
    SELECT min(class_size) AS class_size
    FROM _duckanon_members JOIN _duckanon_hashed USING (class)
    WHERE member IS NOT NULL
    GROUP BY member
), _duckanon_by_people AS (
    SELECT class_size, sum(people)::BIGINT AS people, sum(row_count)::BIGINT AS row_count
    FROM (SELECT class_size, count(*) AS people, 0 AS row_count FROM _duckanon_smallest GROUP BY class_size
          UNION ALL
          SELECT class_size, 0, sum(row_count) FROM _duckanon_hashed GROUP BY class_size)
    GROUP BY class_size
)
FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_by_rows' ELSE '_duckanon_by_people' END);
