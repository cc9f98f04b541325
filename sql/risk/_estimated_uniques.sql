-- anon._estimated_uniques: the body of anon.population_uniques. The classes go to Python, their values as hashes.
-- needs: python
CREATE OR REPLACE MACRO anon._estimated_uniques(tbl, cols, population, interactions, variant, nulls, person) AS TABLE
WITH _duckanon_chosen AS NOT MATERIALIZED (
    SELECT COLUMNS(_anon_choose(*, 'anon.population_uniques', tbl, {'cols': cols, 'person': person}))
    FROM query_table(tbl)
), _duckanon_classes AS NOT MATERIALIZED (
    SELECT anon._value_code(COLUMNS(cols)), _duckanon_size
    FROM anon._classes('anon.population_uniques', '"_duckanon_chosen"', cols, nulls, person := person)
), _duckanon_sets AS (                                          -- people whose rows are in the same set of classes
    SELECT count(*) AS size
    FROM (SELECT count(*) AS set_classes, sum(hash(class)) AS set_sum
          FROM anon._hashed_members('anon.population_uniques', '"_duckanon_chosen"', cols, nulls, person)
          WHERE member IS NOT NULL GROUP BY member)
    GROUP BY set_classes, set_sum
), _duckanon_groups AS NOT MATERIALIZED (
    SELECT size, count(*) AS groups FROM _duckanon_sets GROUP BY size
), _duckanon_no_groups AS NOT MATERIALIZED (
    SELECT NULL::BIGINT AS size, NULL::BIGINT AS groups
), _duckanon_estimated AS (
    SELECT unnest(anon._run_population_uniques(
                      anon._tickets('"_duckanon_classes"', '', NULL, true),
                      anon._tickets(CASE WHEN person IS NULL THEN '"_duckanon_no_groups"' ELSE '"_duckanon_groups"' END,
                                    '', NULL, person IS NOT NULL),
                      {'population': population::DOUBLE, 'variant': variant, 'person': person,
                       'interactions': TRY_CAST(interactions AS VARCHAR[][])}), max_depth := 2)
)
SELECT method, uniques, uniques / population::DOUBLE AS fraction, in_table,
       CASE WHEN in_table IS NULL AND starts_with(method, 'log_linear')
                 THEN 'No answer: the model is of one combination of values a person, and somebody has several.'
            WHEN in_table IS NULL THEN 'No answer: no such distribution has the class sizes of the table.'
            WHEN method = 'zayatz'
                 THEN 'People of the population who are alone with their values, if class sizes are as in the table.'
            WHEN method = 'pitman'
                 THEN 'The same, if class sizes follow Pitman''s distribution: for samples of up to a tenth.'
            WHEN method = 'snb' THEN 'The same, if class sizes follow a shifted negative binomial distribution.'
            WHEN method = 'dankar' THEN 'The one of these to take, by the rule of Dankar et al.: ' || chosen || '.'
            WHEN method = 'log_linear'
                 THEN 'The same, by the values themselves: columns are independent but for the named interactions.'
            ELSE 'By that model, people of the table whom a guess among all with their values would find (the sum of '
                 '1/F).' END AS meaning
FROM _duckanon_estimated
ORDER BY list_position(['zayatz', 'pitman', 'snb', 'dankar', 'log_linear', 'log_linear_matches'], method)
         ASC NULLS LAST;
