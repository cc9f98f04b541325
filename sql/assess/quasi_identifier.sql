-- anon.quasi_identifier: how many people are unique in these columns, in the table and in the population it comes from.
--     rows, people                without `person` every row is a person
--     distinct_observed           combinations that occur
--     singletons                  S, the people who are unique in at least one of their classes; unique_fraction is F1
--                                 = S / people
--     distinct_product            D, the product of the columns' distinct counts, NULL counted as a value where it
--                                 occurs
--     unique_fraction_bound       F2, the largest fraction of the population that can be unique:
--                                 anon.max_unique_fraction
--     population_anonymity        n / D, at least 1: how many people share a combination on average
--     smallest_class, average_class  people in a class of the table
--     population                  number of people that the table comes from; NULL: the table is its own population [a
--                                 number, at least the people of the table, or NULL]
--     nulls                       as in anon.l_diversity
--     person                      as in anon.k_anonymity
--     (Probabilistic Anonymity, Section 2 and Figure 3)
-- promises: OneRow(), EqualsDefinition(), CountsPeople('distinct_observed', 'singletons', 'people', 'smallest_class'),
--           InvariantUnder(*TABLE, 'types')
-- test: tests/assess/quasi_identifier.test
CREATE OR REPLACE MACRO anon.quasi_identifier(tbl, cols, population := NULL, nulls := 'value', person := NULL) AS TABLE
WITH _duckanon_classes AS MATERIALIZED (
    FROM anon._classes('anon.quasi_identifier', tbl, cols, nulls, person := person)
), _duckanon_observed AS (
    SELECT coalesce(sum(_duckanon_rows), 0)::BIGINT AS row_count, count(*) AS distinct_observed,
           sum(_duckanon_size) AS members, min(_duckanon_size) AS smallest_class,
           CASE WHEN person IS NULL THEN count(*) FILTER (_duckanon_size = 1)
                ELSE count(DISTINCT _duckanon_anyone) FILTER (_duckanon_size = 1) END AS singletons
    FROM _duckanon_classes
), _duckanon_distinct_counts AS (
    SELECT count(DISTINCT COLUMNS(cols)) + coalesce(max((COLUMNS(cols) IS NULL)::TINYINT), 0) FROM _duckanon_classes
), _duckanon_product AS (
    SELECT anon.multiple_domain(distinct_counts) AS distinct_product
    FROM (SELECT [UNPACK(COLUMNS(*))] AS distinct_counts FROM _duckanon_distinct_counts)
), _duckanon_every_row AS (
    SELECT row_count AS people FROM _duckanon_observed
), _duckanon_everybody AS (
    SELECT count(DISTINCT anon._value_code(COLUMNS([person]))) AS people
    FROM query_table(tbl) WHERE nulls = 'value' OR COLUMNS(cols) IS NOT NULL
), _duckanon_universe AS (
    SELECT *, anon._checked_people('anon.quasi_identifier', population, row_count, people, person) AS universe
    FROM _duckanon_observed, _duckanon_product,
         query_table(CASE WHEN person IS NULL THEN '_duckanon_every_row' ELSE '_duckanon_everybody' END)
)
-- the universe is looked at whatever columns are asked for: refusals do not depend on them
SELECT row_count AS "rows", distinct_observed, singletons, singletons / people AS unique_fraction,
       distinct_product, anon.max_unique_fraction(distinct_product, universe) AS unique_fraction_bound,
       greatest(universe / distinct_product, 1) AS population_anonymity, smallest_class,
       members / distinct_observed AS average_class, people
FROM _duckanon_universe
WHERE universe IS NOT NULL;
COMMENT ON MACRO TABLE anon.quasi_identifier IS
    'The share of unique people in a column set: in the table, and at most in the population.';
