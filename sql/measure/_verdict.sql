-- anon._verdict: the rows of anon.verdict.
--     caller  the function that errors name: what it is made of refuses in its name
-- needs: python
CREATE OR REPLACE MACRO anon._verdict(
    original, released, cols, reference, holdout, k, max_correlation_difference, max_detectability_auc, hierarchies,
    draws, log, special, categories, derived, seed, person, caller := 'anon.verdict'
) AS TABLE
WITH _duckanon_verdict_classes AS (                    -- two columns, so that no name of the release is in the way
    SELECT struct_pack(*COLUMNS(_anon_choose(*, caller, released, {'cols': cols}))) AS class,
           COLUMNS(_anon_choose(*, caller, released, {'person': [coalesce(person, cols[1])]})) AS whose
    FROM query_table(released)
), _duckanon_k AS (
    SELECT 'k' AS promise, min(_duckanon_size) AS measured, k AS "limit", min(_duckanon_size) >= k AS pass
    FROM anon._classes(caller, '"_duckanon_verdict_classes"', ['class'], 'value',
                       person := CASE WHEN person IS NOT NULL THEN 'whose' END)
), _duckanon_correlation AS (
    SELECT 'correlation' AS promise, any_value(median_difference) AS measured, max_correlation_difference AS "limit",
           coalesce(any_value(median_difference) <= max_correlation_difference, false) AS pass
    FROM query(_anon_write('utility', {'original': original, 'released': released, 'cols': cols,
                                       'hierarchies': hierarchies, 'special': special, 'categories': categories,
                                       'seed': seed}, NULL, caller))
    WHERE statistic = 'correlation'
), _duckanon_detectability AS (
    SELECT 'detectability' AS promise, auc AS measured, max_detectability_auc AS "limit",
           auc <= max_detectability_auc AS pass
    FROM query(_anon_write('detectability', {'original': original, 'released': released, 'cols': cols,
                                             'holdout': coalesce(holdout, reference), 'hierarchies': hierarchies,
                                             'categories': categories, 'seed': seed}, NULL, caller))
    WHERE comparison = 'released'
), _duckanon_not_asked AS (
    SELECT NULL::VARCHAR AS promise, NULL::DOUBLE AS measured, NULL::DOUBLE AS "limit", NULL::BOOLEAN AS pass LIMIT 0
)
SELECT measure AS promise, coalesce(shift_bound, value) AS measured, "limit", pass
FROM query(_anon_write('privacy_test', {'original': original, 'released': released, 'cols': cols,
                                        'reference': reference, 'holdout': holdout, 'hierarchies': hierarchies,
                                        'draws': draws, 'log': log, 'special': special, 'categories': categories,
                                        'derived': derived, 'seed': seed}, NULL, caller))
UNION ALL                                              -- what is not asked for is not bound: that took half of the time
FROM query_table(CASE WHEN k IS NULL THEN '_duckanon_not_asked' ELSE '_duckanon_k' END)
UNION ALL
FROM query_table(CASE WHEN max_correlation_difference IS NULL THEN '_duckanon_not_asked'
                      ELSE '_duckanon_correlation' END)
UNION ALL
FROM query_table(CASE WHEN max_detectability_auc IS NULL THEN '_duckanon_not_asked' ELSE '_duckanon_detectability' END);
