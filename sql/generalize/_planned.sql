-- anon._planned: the body of anon.plan, and the first step of anon.generalize: the plan that Python fitted to the
-- combinations of values that occur, with the column `released` (anon._released_types). Python gets the place of each
-- sensitive value among all.
--     refused  the sentence with which Python refuses the plan; NULL: none
-- Which of two steps is read is known when the query is bound; the other one is not even bound.
-- needs: python
CREATE OR REPLACE MACRO anon._planned(
    tbl, cols, k, beta, population, weights, hierarchies, max_suppressed_fraction, methods, person, sensitive, l,
    l_kind, c, t, caller := 'anon.plan', refused := NULL
) AS TABLE
WITH _duckanon_source AS NOT MATERIALIZED (
    SELECT COLUMNS(_anon_choose(*, caller, tbl, {'cols': cols, 'person': person, 'sensitive': sensitive})),
           NULL::BIGINT AS _duckanon_none
    FROM query_table(tbl)
), _duckanon_told AS (
    SELECT anon._told_apart(caller, alias(COLUMNS(cols)), COLUMNS(cols)),
           COLUMNS([coalesce(sensitive, '_duckanon_none')]) AS _duckanon_sensitive,
           anon._value_code(COLUMNS([coalesce(person, '_duckanon_none')])) AS _duckanon_person,
           count(*) AS _duckanon_size
    FROM _duckanon_source
    WHERE CASE WHEN regexp_matches(typeof(COLUMNS(cols)), '^(UUID|BLOB|BIT|INTERVAL|BIGNUM)$|^(STRUCT|MAP|UNION)\(|\]$')
                    THEN error(caller || ': column "' || alias(COLUMNS(cols)) || '", ' || typeof(COLUMNS(cols))
                               || ', has a type that cannot be generalized; cast it to VARCHAR first.')
               ELSE true END
          AND anon._uncollated(caller, COLUMNS([coalesce(sensitive, '_duckanon_none')]))
    GROUP BY ALL
), _duckanon_ranked AS (
    SELECT * REPLACE (dense_rank() OVER (ORDER BY _duckanon_sensitive ASC NULLS LAST) AS _duckanon_sensitive)
    FROM _duckanon_told
), _duckanon_grouped AS (
    FROM query_table(CASE WHEN sensitive IS NULL THEN '_duckanon_told' ELSE '_duckanon_ranked' END)
), _duckanon_type AS (
    SELECT anon._kind(column_type) IN ('numeric', 'date', 'boolean')
    FROM anon._columns('_duckanon_source') WHERE anon._is_among(column_name, [sensitive])
), _duckanon_population AS (
    SELECT anon._told_apart(caller, alias(COLUMNS(cols)), COLUMNS(cols)), count(*) AS _duckanon_size
    FROM query_table(population)
    GROUP BY ALL
), _duckanon_others AS (
    SELECT coalesce(anon._tickets('"_duckanon_population"', '', NULL, true), [])
), _duckanon_trees AS (
    SELECT list({'column_name': column_name, 'leaf': leaf, 'level': level, 'label': label})
    FROM anon._hierarchies(caller, hierarchies)
), _duckanon_none_given AS (
    SELECT NULL
)
SELECT _plan.*, released
FROM (SELECT unnest(anon._run_plan(
          anon._tickets('"_duckanon_grouped"', '', NULL, true),
          (FROM query_table(CASE WHEN typeof(population) = 'VARCHAR' THEN '_duckanon_others'
                                 ELSE '_duckanon_none_given' END)),
          {'caller': caller, 'refused': refused, 'cols': cols, 'k': k, 'beta': beta, 'population': population,
           'weights': weights, 'methods': methods, 'max_suppressed_fraction': max_suppressed_fraction,
           'hierarchies': (FROM query_table(CASE WHEN hierarchies IS NULL THEN '_duckanon_none_given'
                                                 ELSE '_duckanon_trees' END)),
           'person': person, 'sensitive': sensitive, 'l': l, 'l_kind': l_kind, 'c': c, 't': t,
           'is_ordered': (FROM query_table(CASE WHEN sensitive IS NULL THEN '_duckanon_none_given'
                                                ELSE '_duckanon_type' END))}), max_depth := 2)) AS _plan
     LEFT JOIN anon._released_types('_duckanon_source', cols) ON true;
