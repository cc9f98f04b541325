-- anon._linked_classes: the sizes of the classes (is_linked false), and of the groups of people whose rows are in the
-- same set of classes (is_linked true): what somebody sees who can link the rows of a person. Without `person` every
-- row is a person, and the second kind is missing. A set of classes is told by its number of classes and the sum of
-- their hashes, hashed again since sums of hashes of neighbouring values could meet.
CREATE OR REPLACE MACRO anon._linked_classes(caller, tbl, cols, nulls, person, alpha) AS TABLE
WITH _duckanon_members AS MATERIALIZED (
    FROM anon._hashed_members(caller, tbl, cols, nulls, person)
), _duckanon_sets AS (
    SELECT count(*) AS set_classes, sum(hash(class)) AS set_sum
    FROM _duckanon_members
    WHERE member IS NOT NULL
    GROUP BY member
), _duckanon_people AS (
    SELECT false AS is_linked, count(member) AS size, sum(row_count)::BIGINT AS row_count
    FROM _duckanon_members GROUP BY class
    UNION ALL
    SELECT true, count(*), NULL FROM _duckanon_sets GROUP BY set_classes, set_sum
), _duckanon_rows AS (
    SELECT false AS is_linked, _duckanon_size AS size, _duckanon_rows AS row_count
    FROM anon._classes(caller, tbl, cols, nulls, alpha := alpha)
)
FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_rows' ELSE '_duckanon_people' END);
