-- anon.k_map: the smallest number of people of the population who share a combination of the columns that the table
-- has: what protects people of whom nobody knows whether they are in the table (Sweeney 2001).
--     k                          with a table of the population: the fewest people of it who share the values of a row;
--                                with their number: the largest k that the smallest class is large enough for
--     smallest_class             the fewest people of the table who share theirs: the k of anon.k_anonymity
--     needed_class               how many people of the table a class must have so that `k` of the population can be
--                                assumed; NULL with a table of the population
--     classes_below, rows_below  classes with fewer than `k` people of the population, or smaller than needed_class,
--                                and their rows
--     rows_outside               rows whose values nobody of the population table has, so that it is incomplete; k is
--                                then 0. NULL with a number
--     population                 name of a table of the population, with the columns, or the number of people that the
--                                table is a simple random sample of [a text or a number]
--     k                          how many people of the population should share the values [a whole number, at least 1]
--     significance               with a number: how improbable a class as large as needed_class must be if fewer shared
--                                the values [a number between 0 and 1]
--     model                      with a number: 'poisson', or 'truncated': the Poisson distribution of those classes
--                                only that have somebody in the table (El Emam and Dankar 2008, as in ARX) [one of
--                                'poisson', 'truncated']
--     nulls                      as in anon.l_diversity
--     person                     as in anon.delta_presence
-- promises: OneRow(), InvariantUnder(*TABLE, 'types')
-- test: tests/risk/k_map.test
CREATE OR REPLACE MACRO anon.k_map(
    tbl, cols, population, k := 5, significance := 0.05, model := 'poisson', nulls := 'value', person := NULL
) AS TABLE
WITH _duckanon_members AS MATERIALIZED (
    FROM anon._population_members('anon.k_map',
             anon._checked_choice('anon.k_map', 'model', model, ['poisson', 'truncated'],
                 anon._checked_whole('anon.k_map', 'k', k, 1,
                     anon._checked_open_fraction('anon.k_map', 'significance', significance,
                         CASE WHEN population IS NULL
                                   THEN error(anon._must_be('anon.k_map', 'population',
                                                            'a number of people or the name of a table', population))
                              ELSE tbl END))),
             cols, CASE WHEN typeof(population) = 'VARCHAR' THEN CAST(population AS VARCHAR) ELSE tbl END, nulls,
             person)
    WHERE is_sample OR typeof(population) = 'VARCHAR'
), _duckanon_classes AS MATERIALIZED (
    FROM anon._population_classes('_duckanon_members', person) WHERE row_count > 0
), _duckanon_universe AS MATERIALIZED (
    SELECT people / anon._checked_people('anon.k_map',
                        CASE WHEN typeof(population) <> 'VARCHAR' THEN population END, row_count, people, person)
               AS sampled, smallest_class
    FROM (SELECT coalesce(sum(row_count), 0)::BIGINT AS row_count, min(sample_people) AS smallest_class,
                 CASE WHEN person IS NULL THEN coalesce(sum(row_count), 0)
                      ELSE (SELECT count(DISTINCT member) FROM _duckanon_members WHERE is_sample) END::BIGINT AS people
          FROM _duckanon_classes)
), _duckanon_needed AS MATERIALIZED (
    SELECT found AS needed_class
    FROM anon._k_map_bisection('_duckanon_universe', k, significance, model = 'truncated')
    WHERE typeof(population) <> 'VARCHAR'
), _duckanon_protected AS (
    SELECT found AS protected
    FROM anon._k_map_bisection('_duckanon_universe', NULL, significance, model = 'truncated')
    WHERE typeof(population) <> 'VARCHAR'
), _duckanon_counted AS (
    SELECT min(population_people) AS fewest, count(*) FILTER (is_below) AS classes_below,
           coalesce(sum(row_count) FILTER (is_below), 0)::BIGINT AS rows_below,
           coalesce(sum(row_count) FILTER (population_people = 0), 0)::BIGINT AS rows_outside
    FROM (SELECT *, CASE WHEN typeof(population) = 'VARCHAR' THEN population_people < k
                         ELSE sample_people < (SELECT needed_class FROM _duckanon_needed) END AS is_below
          FROM _duckanon_classes)
)
SELECT CASE WHEN typeof(population) = 'VARCHAR' THEN fewest ELSE (SELECT protected FROM _duckanon_protected) END AS k,
       smallest_class, (SELECT needed_class FROM _duckanon_needed) AS needed_class, classes_below, rows_below,
       CASE WHEN typeof(population) = 'VARCHAR' THEN rows_outside END AS rows_outside
FROM _duckanon_counted, _duckanon_universe
WHERE sampled IS NOT NULL;
COMMENT ON MACRO TABLE anon.k_map IS
    'The smallest number of people of the population who share a combination of the table: counted, or estimated.';
