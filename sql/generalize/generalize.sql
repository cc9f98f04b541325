-- anon.generalize: a table whose columns `cols` are made coarser until no one stands out in them; all others are
-- unchanged. Without a population the promise is hard: every class over `cols` has at least `k` rows; classes that
-- cannot reach k are left out, at most `max_suppressed_fraction` of the rows. With a population the table is
-- (1-beta, k)-anonymous with respect to it: it has at most anon.distinct_budget(population, k, beta) classes, and no
-- row is left out. Either promise is counted before anything is returned.
--     beta, population, weights, hierarchies, max_suppressed_fraction, methods   as in anon.plan
--     keep  other columns that look like direct identifiers (anon.direct_identifiers) and are to be released all the
--           same; those that are not named here are refused
-- The rows come in random order, since the old order may tell what was taken away. To use the same categories next
-- month, store the plan: anon.plan, anon.apply_plan.
-- test: tests/generalize/generalize.test
-- needs: python
CREATE OR REPLACE MACRO anon.generalize(
    tbl, cols, k, beta := 0.1, population := NULL, weights := NULL, hierarchies := NULL,
    max_suppressed_fraction := 0.01, methods := NULL, keep := NULL
) AS TABLE
WITH _duckanon_plan AS MATERIALIZED (
    FROM anon._planned('anon.generalize', tbl, cols, k, beta, population, weights, hierarchies, max_suppressed_fraction,
                       methods, (FROM anon._identifiers(tbl, cols, keep)))
), _duckanon_coarse AS MATERIALIZED (
    SELECT *, row(UNPACK(COLUMNS(cols))) AS _duckanon_class FROM anon.apply_plan(tbl, '_duckanon_plan')
), _duckanon_sizes AS MATERIALIZED (
    SELECT _duckanon_class, count(*) AS size FROM _duckanon_coarse GROUP BY _duckanon_class
), _duckanon_promise AS MATERIALIZED (
    SELECT anon._kept_promise(population, k, beta, max_suppressed_fraction, sum(size), count(*),
                              coalesce(sum(size) FILTER (size < k), 0)) AS least_size
    FROM _duckanon_sizes
)
SELECT * EXCLUDE (_duckanon_class)
FROM _duckanon_coarse
WHERE _duckanon_class NOT IN (SELECT _duckanon_class FROM _duckanon_sizes, _duckanon_promise WHERE size < least_size)
ORDER BY random() ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.generalize IS
    'A table whose columns are made coarser until every class has at least k rows, or is k-anonymous in a population.';
