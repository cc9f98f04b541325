-- anon.verdict: whether a release keeps its promises, one row each; anon.require stops a job when one is broken.
--     promise    the measures of anon.privacy_test; with `k` k (the smallest class of the release over `cols`); with
--                `max_correlation_difference` correlation (the median difference of anon.utility); with
--                `max_detectability_auc` detectability
--     measured, "limit", pass   what came out, what is allowed, and whether it keeps to that: k and class_size are the
--                least that is allowed, all other limits are the most. Too few records to tell is a promise not kept
--     reference, holdout, draws, hierarchies, log, derived, seed  as in anon.privacy_test
--     special, categories  as in anon.privacy_test; correlation and detectability read numbers in the same way
--     person     name of the release's column that says whose row it is: k then counts different people
-- test: tests/measure/verdict.test
-- needs: python
CREATE OR REPLACE MACRO anon.verdict(
    original, released, cols, reference := NULL, holdout := NULL, k := NULL, max_correlation_difference := NULL,
    max_detectability_auc := NULL, hierarchies := NULL, draws := NULL, log := NULL, special := 'auto',
    categories := NULL, derived := 'off', seed := NULL, person := NULL
) AS TABLE
WITH _duckanon_verdict_classes AS (                    -- one column, so that no name of the release is in the way
    SELECT class, whose[1] AS whose
    FROM (SELECT struct_pack(*COLUMNS(cols)) AS class,
                 [UNPACK(COLUMNS(CASE WHEN person IS NULL THEN cols[1:1] ELSE [person] END))] AS whose
          FROM query_table(released))
), _duckanon_correlation AS (
    SELECT 'correlation' AS promise, any_value(median_difference) AS measured, max_correlation_difference AS "limit",
           coalesce(any_value(median_difference) <= max_correlation_difference, false) AS pass
    FROM anon.utility(original, released, cols, hierarchies := hierarchies, special := special,
                      categories := categories, seed := seed)
    WHERE statistic = 'correlation'
), _duckanon_detectability AS (
    SELECT 'detectability' AS promise, auc AS measured, max_detectability_auc AS "limit",
           auc <= max_detectability_auc AS pass
    FROM anon.detectability(original, released, cols, hierarchies := hierarchies, categories := categories,
                            seed := seed)
    WHERE comparison = 'released'
), _duckanon_not_asked AS (
    SELECT NULL::VARCHAR AS promise, NULL::DOUBLE AS measured, NULL::DOUBLE AS "limit", NULL::BOOLEAN AS pass LIMIT 0
)
SELECT measure AS promise, coalesce(shift_bound, value) AS measured, "limit", pass
FROM anon.privacy_test(original, released, cols, reference := reference, holdout := holdout, hierarchies := hierarchies,
                       draws := draws, log := log, special := special, categories := categories,
                       derived := derived, seed := seed)
UNION ALL
SELECT 'k', classes.k, k, classes.k >= k
FROM anon.k_anonymity('"_duckanon_verdict_classes"', ['class'],
                      person := CASE WHEN person IS NOT NULL THEN 'whose' END) AS classes WHERE k IS NOT NULL
UNION ALL                                              -- what is not asked for is not bound: that took half of the time
FROM query_table(CASE WHEN max_correlation_difference IS NULL THEN '_duckanon_not_asked'
                      ELSE '_duckanon_correlation' END)
UNION ALL
FROM query_table(CASE WHEN max_detectability_auc IS NULL THEN '_duckanon_not_asked' ELSE '_duckanon_detectability' END);
COMMENT ON MACRO TABLE anon.verdict IS
    'Whether a release keeps its promises of privacy, class size and utility: one row each, pass or fail.';
