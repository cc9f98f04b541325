-- anon._identifying_sets: the body of anon.quasi_identifiers. The search walks the lattice of sets over integer codes
-- in Python: one GROUP BY a set would take many times as long. Which of two steps is read is known when the query is
-- bound.
-- needs: python
CREATE OR REPLACE MACRO anon._identifying_sets(tbl, cols, max_size, alpha, population, minimal, approximate, person) AS
TABLE
WITH _duckanon_source AS NOT MATERIALIZED (
    SELECT *, NULL::UBIGINT AS _duckanon_none FROM query_table(tbl)
), _duckanon_chosen AS NOT MATERIALIZED (
    SELECT COLUMNS(_anon_choose(*, 'anon.quasi_identifiers', tbl, {
               'cols': coalesce(cols, list_filter(*, lambda name: name <> '_duckanon_none'
                                                                  AND lower(name) <> lower(coalesce(person, ''))))})),
           COLUMNS(_anon_choose(*, 'anon.quasi_identifiers', tbl, {'person': coalesce(person, '_duckanon_none')}))
               AS _duckanon_person
    FROM _duckanon_source
), _duckanon_asked AS NOT MATERIALIZED (
    SELECT * REPLACE (anon._value_code(_duckanon_person) AS _duckanon_person) FROM _duckanon_chosen
), _duckanon_hashed AS NOT MATERIALIZED (
    SELECT coalesce(anon._value_code(COLUMNS(* EXCLUDE (_duckanon_person))), hash(NULL)), _duckanon_person
    FROM _duckanon_asked
), _duckanon_options AS (
    SELECT {'max_size': max_size, 'minimal': minimal, 'alpha': alpha, 'population': population::DOUBLE,
            'person': person} AS options
), _duckanon_exact AS (
    SELECT anon._run_quasi_identifiers(anon._tickets('"_duckanon_asked"', '', NULL, true,
                                                     caller := 'anon.quasi_identifiers'),
                                       (FROM _duckanon_options)) AS sets
), _duckanon_sampled AS (
    SELECT anon._run_sampled_quasi_identifiers(
               (SELECT list(ticket) FILTER (ticket IS NOT NULL)
                FROM (SELECT _anon_park_sampled_quasi_identifiers(record, call, max_size, person IS NOT NULL) AS ticket
                      FROM (SELECT struct_pack(*COLUMNS(*)) AS record FROM _duckanon_hashed),
                           (FROM anon._call()))),
               (FROM _duckanon_options)) AS sets
), _duckanon_sets AS (
    SELECT unnest(sets, max_depth := 2)
    FROM query_table(CASE WHEN approximate THEN '_duckanon_sampled' ELSE '_duckanon_exact' END)
), _duckanon_universe AS (
    SELECT *, anon._checked_people('anon.quasi_identifiers', population, "rows", people, person) AS universe
    FROM _duckanon_sets
)
SELECT columns, len(columns) AS size, "rows", distinct_observed, singletons, singletons / people AS unique_fraction,
       distinct_product, anon.max_unique_fraction(distinct_product, universe) AS unique_fraction_bound,
       greatest(universe / distinct_product, 1) AS population_anonymity, smallest_class,
       members / distinct_observed AS average_class,
       unique_fraction >= alpha AS quasi_identifier_in_table,
       -- where the table is the population, its unique people are counted: no bound is needed
       CASE WHEN universe > people THEN unique_fraction_bound ELSE unique_fraction END >= alpha
           AS quasi_identifier_in_population, distinct_error, singletons_error,
       people
FROM _duckanon_universe
ORDER BY singletons DESC NULLS LAST, size ASC NULLS LAST, columns ASC NULLS LAST;
