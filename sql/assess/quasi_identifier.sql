-- anon.quasi_identifier: can people be picked out by these columns, in the table and in the population it comes from?
--     rows, distinct_observed (combinations that occur), singletons (S), unique_fraction (F1 = S / rows)
--     distinct_product       D, the product of the columns' distinct counts, NULL counted as a value where it occurs
--     unique_fraction_bound  F2, the largest fraction of the population that can be unique: anon.max_unique_fraction
--     population_anonymity   n / D, at least 1: how many people share a combination on average
--     smallest_class, average_class   in the table
--     population             NULL: the table is its own universe
--     nulls                  'value': NULL is a value; 'drop': rows with a NULL in cols are left out
--     (Probabilistic Anonymity, Section 2 and Figure 3)
-- test: tests/assess/quasi_identifier.test
CREATE OR REPLACE MACRO anon.quasi_identifier(tbl, cols, population := NULL, nulls := 'value') AS TABLE
WITH _classes AS MATERIALIZED (
    FROM anon._classes('anon.quasi_identifier', tbl, cols, nulls)
), _observed AS (
    SELECT coalesce(sum(_duckanon_size), 0)::BIGINT AS row_count, count(*) AS distinct_observed,
           count(*) FILTER (_duckanon_size = 1) AS singletons, min(_duckanon_size) AS smallest_class
    FROM _classes
), _distinct_counts AS (
    SELECT count(DISTINCT COLUMNS(cols)) + max((COLUMNS(cols) IS NULL)::TINYINT) FROM _classes
), _product AS (
    SELECT anon.multiple_domain(distinct_counts) AS distinct_product
    FROM (SELECT [UNPACK(COLUMNS(*))] AS distinct_counts FROM _distinct_counts)
), _universe AS (
    SELECT *, anon._checked_population('anon.quasi_identifier', population, row_count) AS people
    FROM _observed, _product
)
SELECT row_count AS "rows", distinct_observed, singletons, singletons / row_count AS unique_fraction, distinct_product,
       anon.max_unique_fraction(distinct_product, people) AS unique_fraction_bound,
       greatest(people / distinct_product, 1) AS population_anonymity, smallest_class,
       row_count / distinct_observed AS average_class
FROM _universe;
COMMENT ON MACRO TABLE anon.quasi_identifier IS
    'Whether a column set picks people out: unique rows in the table, and their largest share in the population.';
