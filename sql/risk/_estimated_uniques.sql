-- anon._estimated_uniques: the body of anon.population_uniques. Only the histogram of class sizes leaves SQL, and with
-- `interactions` the counts of the columns in them, as codes.
-- needs: python
CREATE OR REPLACE MACRO anon._estimated_uniques(tbl, cols, population, interactions, variant, nulls, person) AS TABLE
WITH _duckanon_chosen AS NOT MATERIALIZED (
    SELECT COLUMNS(_anon_choose(*, 'anon.population_uniques', tbl, {'cols': cols, 'person': person}))
    FROM query_table(tbl)
), _duckanon_records AS NOT MATERIALIZED (
    FROM anon._risk_records('anon.population_uniques', '"_duckanon_chosen"', cols, NULL, NULL, NULL, person, 'exact',
                            nulls, 1)
), _duckanon_row_classes AS NOT MATERIALIZED (
    SELECT class, any_value(codes) AS codes, count(*) AS size FROM _duckanon_records GROUP BY class
), _duckanon_memberships AS (
    SELECT class, member, any_value(codes) AS codes FROM _duckanon_records
    WHERE member IS NOT NULL GROUP BY class, member
), _duckanon_people_classes AS NOT MATERIALIZED (
    SELECT class, any_value(codes) AS codes, count(*) AS size FROM _duckanon_memberships GROUP BY class
), _duckanon_classes AS MATERIALIZED (
    FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_row_classes' ELSE '_duckanon_people_classes' END)
), _duckanon_row_groups AS NOT MATERIALIZED (
    SELECT size FROM _duckanon_classes
), _duckanon_people_groups AS NOT MATERIALIZED (                -- people whose rows are in the same set of classes
    SELECT count(*) AS size
    FROM (SELECT count(*) AS set_classes, sum(hash(class)) AS set_sum FROM _duckanon_memberships GROUP BY member)
    GROUP BY set_classes, set_sum
), _duckanon_histogram AS MATERIALIZED (
    SELECT size, count(*) AS classes
    FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_row_groups' ELSE '_duckanon_people_groups' END)
    GROUP BY size
), _duckanon_universe AS MATERIALIZED (
    SELECT people, everybody, people / everybody AS sampled
    FROM (SELECT people, anon._checked_people('anon.population_uniques', population, row_count, people, person)
                     AS everybody
          FROM (SELECT coalesce(sum(size * classes), 0)::BIGINT AS people FROM _duckanon_histogram),
               (SELECT count(*) AS row_count FROM _duckanon_records))
), _duckanon_estimated AS (
    SELECT unnest(anon._run_population_uniques(anon._tickets('_duckanon_histogram', '', NULL, true),
                                               {'population': (SELECT everybody FROM _duckanon_universe),
                                                'variant': variant}), max_depth := 2)
), _duckanon_model AS MATERIALIZED (           -- which columns interact: all of them, and the named sets within these
    SELECT coalesce(list_sort(list_distinct(flatten(sets)), 'ASC', 'NULLS LAST'), []) AS joint,
           list_transform(sets, lambda places: list_transform(places, lambda place: list_position(joint, place)))
               AS sets_within
    FROM (SELECT list_transform(TRY_CAST(interactions AS VARCHAR[][]), lambda columns:
                     list_transform(columns, lambda named: list_position(names, lower(named)))) AS sets
          FROM (SELECT list(lower(column_name) ORDER BY place ASC NULLS LAST) AS names
                FROM anon._columns('"_duckanon_chosen"') WHERE anon._is_among(column_name, cols)))
), _duckanon_joint AS NOT MATERIALIZED (
    SELECT class, size, hash(joint_codes) AS joint_class, joint_codes
    FROM (SELECT class, size, list_transform(joint, lambda place: coalesce(codes[place], 0)) AS joint_codes
          FROM _duckanon_classes, _duckanon_model
          WHERE interactions IS NOT NULL)
), _duckanon_patterns AS MATERIALIZED (
    SELECT row_number() OVER () AS pattern, joint_class, codes, size
    FROM (SELECT joint_class, any_value(joint_codes) AS codes, sum(size)::BIGINT AS size
          FROM _duckanon_joint GROUP BY joint_class)
), _duckanon_packed AS NOT MATERIALIZED (
    SELECT pattern, codes, size FROM _duckanon_patterns
), _duckanon_expected AS (
    SELECT unnest(anon._run_expected_counts(anon._tickets('_duckanon_packed', '', NULL, interactions IS NOT NULL),
                                            {'interactions': (SELECT sets_within FROM _duckanon_model)}),
                  max_depth := 2)
    WHERE interactions IS NOT NULL
), _duckanon_cells AS NOT MATERIALIZED (                        -- the values of columns that interact with none
    SELECT class, size, place, code
    FROM (SELECT class, size, unnest(range(1, 1 + len(codes))) AS place,
                 coalesce(unnest(codes), 0) AS code
          FROM _duckanon_classes), _duckanon_model
    WHERE NOT list_contains(joint, place)
), _duckanon_shares AS MATERIALIZED (
    SELECT place, code, ln(sum(size) / any_value(people)) AS share_log
    FROM _duckanon_cells, _duckanon_universe GROUP BY place, code
), _duckanon_alone AS (                                         -- the logarithm of each one's share, by the model
    SELECT class, sum(share_log) AS share_log
    FROM (SELECT class, share_log FROM _duckanon_cells JOIN _duckanon_shares USING (place, code) WHERE size = 1
          UNION ALL
          SELECT class, ln(expected / people)
          FROM _duckanon_joint JOIN _duckanon_patterns USING (joint_class) JOIN _duckanon_expected USING (pattern),
               _duckanon_universe
          WHERE _duckanon_joint.size = 1)
    GROUP BY class
), _duckanon_unseen AS (                                        -- how many others with these values are to be expected
    SELECT (1 - sampled) * people * exp(share_log) / CASE WHEN variant = 'sdcmicro' THEN 1 ELSE sampled END AS unseen
    FROM _duckanon_alone, _duckanon_universe
), _duckanon_fitted AS (
    SELECT CASE WHEN is_known THEN coalesce(alone, 0) END AS alone, CASE WHEN is_known THEN coalesce(found, 0) END
               AS found
    FROM (SELECT fsum(exp(-unseen)) AS alone,
                 fsum(CASE WHEN unseen < 1e-9 THEN 1 ELSE (1 - exp(-unseen)) / unseen END) AS found
          FROM _duckanon_unseen),
         (SELECT (SELECT sum(size) FROM _duckanon_classes) = people AS is_known FROM _duckanon_universe)
), _duckanon_rows AS (
    SELECT method, uniques, uniques * sampled AS in_table, chosen FROM _duckanon_estimated, _duckanon_universe
    UNION ALL
    SELECT 'log_linear', alone / sampled, alone, NULL FROM _duckanon_fitted, _duckanon_universe
    UNION ALL
    SELECT 'log_linear_matches', NULL, found, NULL FROM _duckanon_fitted
)
SELECT method, uniques, uniques / everybody AS fraction, in_table,
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
FROM _duckanon_rows, _duckanon_universe
ORDER BY list_position(['zayatz', 'pitman', 'snb', 'dankar', 'log_linear', 'log_linear_matches'], method)
         ASC NULLS LAST;
