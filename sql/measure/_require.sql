-- anon._require: the rows of anon.require, in the order of the promises.
-- needs: python
CREATE OR REPLACE MACRO anon._require(
    original, released, cols, reference, holdout, k, max_correlation_difference, max_detectability_auc, hierarchies,
    draws, log, special, categories, derived, seed, person
) AS TABLE
WITH _duckanon_verdict AS MATERIALIZED (
    SELECT *, list_position(['distance', 'ambiguity', 'uncertainty', 'exact_copies', 'unique_copies', 'near_copies',
                             'noisy_copies', 'rare_values', 'class_size', 'membership', 'isolated_membership', 'k',
                             'correlation', 'detectability'], promise) AS place
    FROM anon._verdict(original, released, cols, reference, holdout, k, max_correlation_difference,
                       max_detectability_auc, hierarchies, draws, log, special, categories, derived, seed, person,
                       caller := 'anon.require')
), _duckanon_decision AS MATERIALIZED (                -- a column of the filter below, so that it is always computed
    SELECT CASE WHEN bool_and(coalesce(pass, false)) THEN true
                ELSE error('anon.require: the release breaks what was promised: '
                           || string_agg(format('{} is {} and must be {} {}', promise, coalesce(found, 'not known'),
                                                CASE WHEN promise IN ('k', 'class_size') THEN 'at least'
                                                     ELSE 'at most' END, wanted), '; ' ORDER BY place ASC NULLS LAST)
                              FILTER (NOT coalesce(pass, false))
                           || '.') END AS is_kept
    FROM (SELECT *, rtrim(rtrim(format('{:.4f}', CAST(measured AS DOUBLE)), '0'), '.') AS found,
                 rtrim(rtrim(format('{:.4f}', CAST("limit" AS DOUBLE)), '0'), '.') AS wanted
          FROM _duckanon_verdict)
)
SELECT promise, measured, "limit", pass FROM _duckanon_verdict WHERE (SELECT is_kept FROM _duckanon_decision)
ORDER BY place ASC NULLS LAST;
