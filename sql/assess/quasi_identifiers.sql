-- anon.quasi_identifiers: every set of up to `max_size` columns, and whether people can be picked out by it: the
-- figures of anon.quasi_identifier, and the verdicts `quasi_identifier_in_table` (unique_fraction at least alpha) and
-- `quasi_identifier_in_population` (unique_fraction_bound at least alpha). Sets that pick out most come first.
--     cols         the columns to combine; NULL: all
--     population   number of people that the table comes from; NULL: the table is its own universe
--     minimal      only quasi-identifiers (in the table or in the population) none of whose subsets is one
--     approximate  true: from hash-sampled combinations of values (Gibbons 2001), in memory that does not grow with the
--                  table; `distinct_error` and `singletons_error` are the standard errors to expect, 0 where exact
--     person       name of the column that says whose row it is, where a person has several: people are then counted,
--                  as by anon.quasi_identifier, and a row whose person is NULL counts as nobody. NULL: every row is a
--                  person. Approximately, `people` is an estimate too, `singletons` is an upper one (a person who is
--                  alone in several combinations counts in each) unless its error is 0, and average_class is NULL
-- The search walks the lattice of sets over integer codes in Python: one GROUP BY a set would take many times as long.
-- (Probabilistic Anonymity, Section 2)
-- test: tests/assess/quasi_identifiers.test
-- needs: python
CREATE OR REPLACE MACRO anon.quasi_identifiers(
    tbl, cols := NULL, max_size := 3, alpha := 0.2, population := NULL, minimal := false, approximate := false,
    person := NULL
) AS TABLE
WITH _duckanon_call AS MATERIALIZED (
    FROM anon._call()
), _duckanon_of_rows AS NOT MATERIALIZED (
    SELECT *, NULL::UBIGINT AS _duckanon_person
    FROM query_table(anon._checked_search('anon.quasi_identifiers', tbl, cols, max_size, alpha, person))
), _duckanon_of_people AS NOT MATERIALIZED (
    SELECT *, CASE WHEN COLUMNS([person]) IS NOT NULL THEN hash(COLUMNS([person])) END AS _duckanon_person
    FROM query_table(anon._checked_search('anon.quasi_identifiers', tbl, cols, max_size, alpha, person))
), _duckanon_asked AS NOT MATERIALIZED (
    SELECT COLUMNS(lambda column_name: anon._is_asked(column_name, cols, person))
    FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_of_rows' ELSE '_duckanon_of_people' END)
), _duckanon_found AS (  -- the rows go one way where nothing prunes the other, too: without the optimizer
    SELECT anon._run_quasi_identifiers(
               (SELECT list(ticket) FILTER (ticket IS NOT NULL)
                FROM (SELECT _anon_park(record, call) AS ticket
                      FROM (SELECT struct_pack(*COLUMNS(*)) AS record FROM _duckanon_asked WHERE NOT approximate),
                           _duckanon_call)),
               {'cols': cols::VARCHAR[], 'max_size': max_size, 'minimal': minimal, 'alpha': alpha::DOUBLE,
                'product_fraction': anon.distinct_for_alpha(alpha, 1), 'population': population::DOUBLE,
                'person': person::VARCHAR}) AS sets
    WHERE NOT approximate
    UNION ALL
    SELECT anon._run_sampled_quasi_identifiers(
               (SELECT list(ticket) FILTER (ticket IS NOT NULL)
                FROM (SELECT _anon_park_sampled_quasi_identifiers(record, call, max_size, person IS NOT NULL) AS ticket
                      FROM (SELECT struct_pack(*COLUMNS(*)) AS record
                            FROM (SELECT CASE WHEN alias(COLUMNS(*)) <> '_duckanon_person' OR COLUMNS(*) IS NOT NULL
                                              THEN hash(COLUMNS(*)) END
                                  FROM _duckanon_asked WHERE approximate)),
                           _duckanon_call)),
               {'cols': cols::VARCHAR[], 'max_size': max_size, 'minimal': minimal, 'alpha': alpha::DOUBLE,
                'product_fraction': anon.distinct_for_alpha(alpha, 1), 'population': population::DOUBLE,
                'person': person::VARCHAR})
    WHERE approximate
), _duckanon_sets AS (
    SELECT unnest(sets, max_depth := 2) FROM _duckanon_found
), _duckanon_universe AS (
    SELECT *, anon._checked_people('anon.quasi_identifiers', population, "rows", people, person) AS universe
    FROM _duckanon_sets
)
SELECT columns, len(columns) AS size, "rows", distinct_observed, singletons, singletons / people AS unique_fraction,
       distinct_product, anon.max_unique_fraction(distinct_product, universe) AS unique_fraction_bound,
       greatest(universe / distinct_product, 1) AS population_anonymity, smallest_class,
       members / distinct_observed AS average_class,
       unique_fraction >= alpha AS quasi_identifier_in_table,
       unique_fraction_bound >= alpha AS quasi_identifier_in_population, distinct_error, singletons_error,
       people
FROM _duckanon_universe
ORDER BY singletons DESC NULLS LAST, size ASC NULLS LAST, columns ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.quasi_identifiers IS
    'Every set of up to max_size columns, with its unique rows and whether it is a quasi-identifier.';
