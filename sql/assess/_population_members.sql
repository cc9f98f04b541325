-- anon._population_members: who is in which class, in the table and in a table of the population: one row per class,
-- side and person, or without `person` per class and side. Both are put below each other before their values are
-- hashed, so that columns whose types differ are compared as SQL compares them.
--     class, member  as in anon._hashed_members
--     is_sample      whether it is the table's side
--     row_count      how many rows
CREATE OR REPLACE MACRO anon._population_members(caller, tbl, cols, population, nulls, person) AS TABLE
WITH _duckanon_sample AS NOT MATERIALIZED (
    SELECT COLUMNS(cols), CASE WHEN COLUMNS([anon._or_none(person)]) IS NOT NULL
                                    THEN COLUMNS([anon._or_none(person)]) END AS _duckanon_person
    FROM (SELECT *, NULL::UBIGINT AS _duckanon_none
          FROM query_table(anon._checked_person(caller, person, cols,
                   anon._checked_apart(caller, cols, ['_duckanon_none'],
                                       anon._checked_groups(caller, tbl, cols, nulls)))))
    WHERE anon._uncollated(caller, COLUMNS(cols))
), _duckanon_population AS NOT MATERIALIZED (
    SELECT COLUMNS(cols), CASE WHEN COLUMNS([anon._or_none(person)]) IS NOT NULL
                                    THEN COLUMNS([anon._or_none(person)]) END AS _duckanon_person
    FROM (SELECT *, NULL::UBIGINT AS _duckanon_none
          FROM query_table(anon._checked_table(caller, 'population', population, CAST(population AS VARCHAR))))
    WHERE anon._uncollated(caller, COLUMNS(cols))
), _duckanon_everyone AS NOT MATERIALIZED (             -- a name that begins with a space is nobody's column
    SELECT true AS " is sample", * FROM _duckanon_sample
    UNION ALL BY NAME
    SELECT false AS " is sample", * FROM _duckanon_population
)
SELECT hash(UNPACK(anon._value_code(COLUMNS(cols)))) AS class, anon._value_code(_duckanon_person) AS member,
       " is sample" AS is_sample, count(*) AS row_count
FROM _duckanon_everyone
WHERE nulls = 'value' OR COLUMNS(cols) IS NOT NULL
GROUP BY ALL;
