-- anon._planned: the plan that Python fitted, with the column `released` (anon._released_types).
--     person   name of the column that says whose row it is; NULL: every row is a person
--     sensitive, l, l_kind, c, t   as in anon.generalize; Python gets the place of each sensitive value among all
--     refused  the sentence with which Python refuses the plan; NULL: none
-- Which of two steps is read is known when the query is bound; the other leaves no trace in the plan.
-- needs: python
CREATE OR REPLACE MACRO anon._planned(
    caller, tbl, cols, k, beta, population, weights, hierarchies, max_suppressed_fraction, methods, person, sensitive,
    l, l_kind, c, t, refused
) AS TABLE
WITH _duckanon_source AS (
    SELECT *, NULL::BIGINT AS _duckanon_none
    FROM query_table(anon._checked_spread(caller, cols, sensitive, l, l_kind, c, t, person,
             anon._checked_names(caller, 'sensitive', [sensitive],
                 anon._checked_plan(caller, cols, k, beta, population, max_suppressed_fraction, person, tbl))))
), _duckanon_by_rows AS (
    SELECT anon._told_apart(caller, alias(COLUMNS(cols)), COLUMNS(cols)),
           COLUMNS([coalesce(sensitive, '_duckanon_none')]) AS _duckanon_sensitive,
           NULL::UBIGINT AS _duckanon_person, count(*) AS _duckanon_size
    FROM _duckanon_source
    WHERE anon._uncollated(caller, COLUMNS([coalesce(sensitive, '_duckanon_none')]))
    GROUP BY ALL
), _duckanon_by_people AS (
    SELECT anon._told_apart(caller, alias(COLUMNS(cols)), COLUMNS(cols)),
           COLUMNS([coalesce(sensitive, '_duckanon_none')]) AS _duckanon_sensitive,
           CASE WHEN COLUMNS([person]) IS NOT NULL THEN hash(COLUMNS([person])) END AS _duckanon_person,
           count(*) AS _duckanon_size
    FROM _duckanon_source
    WHERE anon._uncollated(caller, COLUMNS([coalesce(sensitive, '_duckanon_none')]))
    GROUP BY ALL
), _duckanon_by_anyone AS (
    FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_by_rows' ELSE '_duckanon_by_people' END)
), _duckanon_ranked AS (
    SELECT * REPLACE (dense_rank() OVER (ORDER BY _duckanon_sensitive ASC NULLS LAST) AS _duckanon_sensitive)
    FROM _duckanon_by_anyone
), _duckanon_grouped AS (
    FROM query_table(CASE WHEN sensitive IS NULL THEN '_duckanon_by_anyone' ELSE '_duckanon_ranked' END)
), _duckanon_population AS (
    SELECT anon._told_apart(caller, alias(COLUMNS(cols)), COLUMNS(cols)), count(*) AS _duckanon_size
    FROM query_table(coalesce(anon._population_table(population), tbl))
    GROUP BY ALL
), _duckanon_nobody AS (
    SELECT NULL::BIGINT AS _duckanon_size LIMIT 0
)
SELECT _plan.*, released
FROM (SELECT unnest(anon._run_plan(
          anon._tickets('"_duckanon_grouped"',         -- the first to be bound: _duckanon_source has been checked
                        list_concat(cols, ['_duckanon_sensitive', '_duckanon_person', '_duckanon_size']), NULL, true),
          anon._pack_other(caller, CASE WHEN anon._population_table(population) IS NOT NULL
                                        THEN '"_duckanon_population"' END, '"_duckanon_nobody"',
                           CASE WHEN anon._population_table(population) IS NULL THEN ['_duckanon_size']
                                ELSE list_concat(cols, ['_duckanon_size']) END, NULL),
          {'caller': caller, 'cols': cols, 'k': k, 'beta': beta,
           'population': CASE WHEN anon._population_table(population) IS NULL THEN TRY_CAST(population AS DOUBLE) END,
           'weights': weights,
           'hierarchies': (SELECT list({'column_name': column_name, 'leaf': leaf, 'level': level, 'label': label})
                           FROM anon._hierarchies(caller, hierarchies)),
           'methods': methods, 'max_suppressed_fraction': max_suppressed_fraction, 'has_person': person IS NOT NULL,
           'has_sensitive': sensitive IS NOT NULL, 'l': CAST(l AS DOUBLE), 'l_kind': l_kind, 'c': CAST(c AS DOUBLE),
           't': CAST(t AS DOUBLE),
           'is_ordered': (SELECT bool_or(anon._kind(column_type) IN ('numeric', 'date', 'boolean'))
                          FROM anon._columns(tbl) WHERE anon._is_among(column_name, [sensitive])),
           'refused': refused, 'unfit': (FROM anon._unfit(tbl, cols))}), max_depth := 2)) AS _plan
     LEFT JOIN anon._released_types(tbl, cols) ON true;
