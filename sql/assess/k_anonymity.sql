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
-- promises: OneRow(), EqualsDefinition(), CountsPeople('k', 'classes', 'people', 'singletons', 'linked_k'),
--           InvariantUnder(*TABLE, 'types')
-- test: tests/assess/k_anonymity.test
CREATE OR REPLACE MACRO anon.k_anonymity(tbl, cols, nulls := 'value', person := NULL, alpha := 1) AS TABLE
WITH _duckanon_checked AS (
    FROM anon._people_anonymity(tbl, cols, nulls, person, alpha)
), _duckanon_plain AS (             -- rows are people: fewer sums, which take half of the time to bind
    SELECT min(size) AS k, count(*) AS classes, sum(size)::BIGINT AS "rows",
           count(*) FILTER (size = 1) AS singletons, singletons AS rows_under_2,
           sum(CASE WHEN size < 3 THEN size ELSE 0 END)::BIGINT AS rows_under_3,
           sum(CASE WHEN size < 5 THEN size ELSE 0 END)::BIGINT AS rows_under_5,
           sum(CASE WHEN size < 10 THEN size ELSE 0 END)::BIGINT AS rows_under_10,
           sum(CASE WHEN size < 20 THEN size ELSE 0 END)::BIGINT AS rows_under_20,
           "rows" AS people, k AS linked_k
    FROM (SELECT _duckanon_size AS size FROM anon._plain_classes('anon.k_anonymity', tbl, cols))
    HAVING anon._checked_rows('anon.k_anonymity', count(*), true)
)
FROM query_table(CASE WHEN anon._is_default(nulls, person, alpha) AND anon._is_plain_call(tbl, cols, nulls)
                      THEN '_duckanon_plain' ELSE '_duckanon_checked' END);
COMMENT ON MACRO TABLE anon.k_anonymity IS
    'The k of a table: its smallest class, and how many rows are in classes under 2, 3, 5, 10 and 20.';
