-- anon.delta_presence: how sure an attacker who knows a person of the population can be that the person is in the
-- table, or is not: the share of the people with the same values who are in it, smallest and largest of the
-- population's classes (Nergiz, Atzori and Clifton 2007).
--     delta_min       smallest share; 0 where nobody of some class is in the table
--     delta_max       largest share; 1 where everybody of some class is
--     average         the share of the whole population
--     classes         classes of the population
--     absent_people   people of the population in whose class nobody is in the table: they are certainly not in it.
--                     One with several rows, if that is so in all of their classes
--     certain_people  people in whose class everybody is in the table: they are certainly in it. One with several rows,
--                     if that is so in one of their classes
--     rows_outside    rows of the table whose values nobody of the population has: the population table is then
--                     incomplete
--     population      name of a table of the population, with the columns [a text]
--     nulls           'value': NULL is a value; 'drop': rows with a NULL in cols are left out, in both tables [one of
--                     'value', 'drop']
--     person          column, of both tables, that identifies the person of a row: people are then counted, and a row
--                     whose person is NULL counts as nobody. NULL: every row is a person [a name, or NULL]
-- promises: OneRow(), EqualsDefinition(), Between(0, 1, 'delta_min', 'delta_max', 'average'),
--           CountsPeople('delta_max', 'certain_people', 'absent_people'), InvariantUnder(*TABLE, 'types')
-- test: tests/risk/delta_presence.test
CREATE OR REPLACE MACRO anon.delta_presence(tbl, cols, population, nulls := 'value', person := NULL) AS TABLE
WITH _duckanon_members AS MATERIALIZED (
    FROM anon._population_members('anon.delta_presence', tbl, cols, population, nulls, person)
), _duckanon_presence AS (
    SELECT *, CASE WHEN population_people > 0 THEN least(sample_people / population_people, 1) END AS presence
    FROM anon._population_classes('_duckanon_members', person)
), _duckanon_by_rows AS (
    SELECT coalesce(sum(population_people) FILTER (presence = 0), 0)::BIGINT AS absent_people,
           coalesce(sum(population_people) FILTER (presence = 1), 0)::BIGINT AS certain_people
    FROM _duckanon_presence
), _duckanon_by_people AS (                             -- a person counts once, with the class that tells most
    SELECT count(*) FILTER (largest = 0) AS absent_people, count(*) FILTER (largest = 1) AS certain_people
    FROM (SELECT max(presence) AS largest
          FROM _duckanon_members JOIN _duckanon_presence USING (class)
          WHERE NOT is_sample AND member IS NOT NULL GROUP BY member)
)
SELECT min(presence) AS delta_min, max(presence) AS delta_max,
       CASE WHEN person IS NULL THEN sum(row_count) / nullif(sum(population_people), 0)
            ELSE (SELECT count(DISTINCT member) FILTER (is_sample) / nullif(count(DISTINCT member)
                             FILTER (NOT is_sample), 0) FROM _duckanon_members) END AS average,
       count(presence) AS classes, any_value(absent_people) AS absent_people,
       any_value(certain_people) AS certain_people,
       coalesce(sum(row_count) FILTER (population_people = 0), 0)::BIGINT AS rows_outside
FROM _duckanon_presence, query_table(CASE WHEN person IS NULL THEN '_duckanon_by_rows' ELSE '_duckanon_by_people' END)
HAVING anon._checked_rows('anon.delta_presence', sum(row_count), true)
       AND anon._checked_rows('anon.delta_presence', count(presence), true);
COMMENT ON MACRO TABLE anon.delta_presence IS
    'How sure one can be that a person of the population is in the table: smallest and largest share of a class.';
