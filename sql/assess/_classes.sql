-- anon._classes: the equivalence classes of a table: one row per combination of values that occurs. GROUP BY ALL groups
-- by the plain columns, which is as fast as a GROUP BY written by hand; one struct of them would take half as long
-- again.
--     nulls            'value': NULL is a value, equal to itself; 'drop': rows with a NULL in a column are left out
--                      'any' (where the caller gives `alpha`): NULL matches anything, see anon._open_classes
--     person           name of the column that says whose row it is; NULL: every row is a person
--     _duckanon_size   how many different people are in the class; 0 where nobody's name is known
--     _duckanon_rows   how many rows are in it
--     _duckanon_anyone the code of one of its people (anon._person_classes), NULL without `person`
-- Which of the steps is read is known when the query is bound; the others leave no trace in the plan.
CREATE OR REPLACE MACRO anon._classes(caller, tbl, cols, nulls, person := NULL, alpha := NULL) AS TABLE
WITH _duckanon_by_rows AS (
    SELECT COLUMNS(cols), count(*) AS _duckanon_size, count(*) AS _duckanon_rows, NULL::UBIGINT AS _duckanon_anyone
    FROM query_table(anon._checked_groups(caller, tbl, cols, nulls))
    WHERE (nulls = 'value' OR COLUMNS(cols) IS NOT NULL) AND anon._uncollated(caller, COLUMNS(cols))
    GROUP BY ALL
), _duckanon_by_people AS (
    SELECT COLUMNS(cols), count(_duckanon_person) AS _duckanon_size, sum(_duckanon_rows)::BIGINT AS _duckanon_rows,
           any_value(_duckanon_person) AS _duckanon_anyone
    FROM anon._person_classes(caller, tbl, cols, nulls, person)
    GROUP BY ALL
), _duckanon_by_matches AS (
    FROM anon._open_classes(caller, tbl, cols, alpha)
)
FROM query_table(CASE WHEN nulls = 'any' AND alpha IS NOT NULL THEN '_duckanon_by_matches'
                      WHEN person IS NULL THEN '_duckanon_by_rows' ELSE '_duckanon_by_people' END);
