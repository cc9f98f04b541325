-- anon.k_anonymity: the number of people in the smallest class of a table, and the number of rows in small classes.
--     k                           size of the smallest class
--     singletons                  classes of one
--     rows_under_2 .. rows_under_20  rows in classes of fewer than that many people
--     people                      different people in the table
--     linked_k                    smallest number of people who have rows in exactly the same set of classes: k for an
--                                 attacker who knows which rows belong to one person, since a release kept them
--                                 together; k without `person`
--     nulls                       'value': NULL is a value; 'drop': rows with a NULL in cols are left out; 'any': NULL
--                                 matches anything, and the size of a class is the number of rows that match it [one of
--                                 'value', 'drop', 'any']
--     alpha                       with 'any', weight of a match that another row's NULL allows; sizes need not be whole
--                                 numbers then [a number from 0 to 1]
--     person                      column that identifies the person of a row, if people have several rows: classes then
--                                 count different people. A row whose person is NULL counts as nobody, so that a class
--                                 may have size 0. NULL: every row is a person [a name, or NULL]
-- The classes that are too small: anon.small_classes; their rows: anon.risky_rows.
-- test: tests/assess/k_anonymity.test
CREATE OR REPLACE MACRO anon.k_anonymity(tbl, cols, nulls := 'value', person := NULL, alpha := 1) AS TABLE
WITH _duckanon_members AS MATERIALIZED (
    FROM anon._hashed_members('anon.k_anonymity', tbl, cols, nulls, person)
), _duckanon_sets AS (              -- hashed again: sums of hashes of neighbouring values could meet
    SELECT count(*) AS set_classes, sum(hash(class)) AS set_sum
    FROM _duckanon_members WHERE member IS NOT NULL GROUP BY member
), _duckanon_people AS (            -- is_linked: groups of people whose rows are in the same set of classes
    SELECT false AS is_linked, count(member) AS size, sum(row_count)::BIGINT AS row_count
    FROM _duckanon_members GROUP BY class
    UNION ALL
    SELECT true, count(*), NULL FROM _duckanon_sets GROUP BY set_classes, set_sum
), _duckanon_rows AS (
    SELECT false AS is_linked, _duckanon_size AS size, _duckanon_rows AS row_count
    FROM anon._classes('anon.k_anonymity', tbl, cols, nulls, is_open := nulls = 'any', alpha := alpha)
), _duckanon_plain AS (
    SELECT false AS is_linked, _duckanon_size AS size, _duckanon_size AS row_count
    FROM anon._row_classes('anon.k_anonymity', tbl, cols, 'value')
), _duckanon_checked AS (
    FROM query_table(CASE WHEN anon._checked_nulls('anon.k_anonymity', nulls, alpha, person) IS NOT NULL
                               AND person IS NULL THEN '_duckanon_rows' ELSE '_duckanon_people' END)
)
SELECT min(size) FILTER (NOT is_linked) AS k,
       count(*) FILTER (NOT is_linked) AS classes, sum(row_count)::BIGINT AS "rows",
       count(*) FILTER (size = 1 AND NOT is_linked) AS singletons,
       sum(CASE WHEN size < 2 THEN row_count ELSE 0 END)::BIGINT AS rows_under_2,
       sum(CASE WHEN size < 3 THEN row_count ELSE 0 END)::BIGINT AS rows_under_3,
       sum(CASE WHEN size < 5 THEN row_count ELSE 0 END)::BIGINT AS rows_under_5,
       sum(CASE WHEN size < 10 THEN row_count ELSE 0 END)::BIGINT AS rows_under_10,
       sum(CASE WHEN size < 20 THEN row_count ELSE 0 END)::BIGINT AS rows_under_20,
       CASE WHEN person IS NULL THEN sum(row_count) ELSE coalesce(sum(size) FILTER (is_linked), 0) END::BIGINT
           AS people,
       CASE WHEN person IS NULL THEN min(size) ELSE coalesce(min(size) FILTER (is_linked), 0) END AS linked_k
FROM query_table(CASE WHEN anon._is_default(nulls, person, alpha) THEN '_duckanon_plain' ELSE '_duckanon_checked' END)
HAVING anon._checked_rows('anon.k_anonymity', count(*), true);
COMMENT ON MACRO TABLE anon.k_anonymity IS
    'The k of a table: its smallest class, and how many rows are in classes under 2, 3, 5, 10 and 20.';
