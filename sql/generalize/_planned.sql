-- anon._planned: the plan that Python fitted, with the column `released` (anon._released_types).
--     person   name of the column that says whose row it is; NULL: every row is a person
--     refused  the sentence with which Python refuses the plan; NULL: none
-- Which of the first two steps is read is known when the query is bound; the other leaves no trace in the plan.
-- needs: python
CREATE OR REPLACE MACRO anon._planned(
    caller, tbl, cols, k, beta, population, weights, hierarchies, max_suppressed_fraction, methods, person, refused
) AS TABLE
WITH _duckanon_by_rows AS (
    SELECT anon._told_apart(caller, alias(COLUMNS(cols)), COLUMNS(cols)), NULL::UBIGINT AS _duckanon_person,
           count(*) AS _duckanon_size
    FROM query_table(anon._checked_plan(caller, cols, k, beta, population, max_suppressed_fraction, person, tbl))
    GROUP BY ALL
), _duckanon_by_people AS (
    SELECT anon._told_apart(caller, alias(COLUMNS(cols)), COLUMNS(cols)),
           CASE WHEN COLUMNS([person]) IS NOT NULL THEN hash(COLUMNS([person])) END AS _duckanon_person,
           count(*) AS _duckanon_size
    FROM query_table(anon._checked_plan(caller, cols, k, beta, population, max_suppressed_fraction, person, tbl))
    GROUP BY ALL
), _duckanon_grouped AS (
    FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_by_rows' ELSE '_duckanon_by_people' END)
), _duckanon_population AS (
    SELECT anon._told_apart(caller, alias(COLUMNS(cols)), COLUMNS(cols)), count(*) AS _duckanon_size
    FROM query_table(coalesce(anon._population_table(population), tbl))
    GROUP BY ALL
)
SELECT _plan.*, released
FROM (SELECT unnest(anon._run_plan(
          anon._pack(caller, anon._checked_names(caller, 'cols', cols, '"_duckanon_grouped"'),  -- the first to be bound
                     list_concat(cols, ['_duckanon_person', '_duckanon_size']), NULL),
          anon._pack_other(caller, CASE WHEN anon._population_table(population) IS NOT NULL
                                        THEN '"_duckanon_population"' END,
                           '"_duckanon_population"', list_concat(cols, ['_duckanon_size']), NULL),
          {'caller': caller, 'cols': cols, 'k': k, 'beta': beta,
           'population': CASE WHEN anon._population_table(population) IS NULL THEN TRY_CAST(population AS DOUBLE) END,
           'weights': weights,
           'hierarchies': (SELECT list(_trees) FROM anon._hierarchies(caller, hierarchies) AS _trees),
           'methods': methods, 'max_suppressed_fraction': max_suppressed_fraction, 'has_person': person IS NOT NULL,
           'refused': refused, 'unfit': (FROM anon._unfit(tbl, cols))}), max_depth := 2)) AS _plan
     LEFT JOIN anon._released_types(tbl, cols) ON true;
