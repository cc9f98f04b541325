-- anon.require: the rows of anon.verdict where every promise is kept; otherwise an error that names the broken ones
-- with what was measured and what is allowed, so that a job stops by itself: CREATE TABLE checked AS FROM
-- anon.require(...). It stops whatever is selected: also SELECT count(*) FROM anon.require(...).
--     All arguments are those of anon.verdict.
-- test: tests/measure/require.test
-- needs: python
CREATE OR REPLACE MACRO anon.require(
    original, released, cols, reference := NULL, holdout := NULL, k := NULL, max_correlation_difference := NULL,
    max_detectability_auc := NULL, hierarchies := NULL, draws := NULL, log := NULL, special := 'auto',
    categories := NULL, derived := 'off', seed := NULL, person := NULL
) AS TABLE
WITH _duckanon_verdict AS MATERIALIZED (
    SELECT *, list_position(['distance', 'ambiguity', 'uncertainty', 'exact_copies', 'unique_copies', 'near_copies',
                             'class_size', 'membership', 'isolated_membership', 'k', 'correlation',
                             'detectability'], promise) AS place
    FROM anon.verdict(original, released, cols, reference := reference, holdout := holdout, k := k,
                      max_correlation_difference := max_correlation_difference,
                      max_detectability_auc := max_detectability_auc, hierarchies := hierarchies,
                      draws := draws, log := log, special := special, categories := categories, derived := derived,
                      seed := seed, person := person)
), _duckanon_decision AS MATERIALIZED (                -- a column of the filter below, so that it is always computed
    SELECT CASE WHEN bool_and(coalesce(pass, false)) THEN true
                ELSE error('anon.require: the release breaks what was promised: '
                           || string_agg(format('{} is {} and must be {} {}', promise,
                                                coalesce(anon._short_number(measured), 'not known'),
                                                CASE WHEN promise IN ('k', 'class_size') THEN 'at least'
                                                     ELSE 'at most' END,
                                                anon._short_number("limit")), '; ' ORDER BY place ASC NULLS LAST)
                              FILTER (NOT coalesce(pass, false))
                           || '.') END AS is_kept
    FROM _duckanon_verdict
)
SELECT promise, measured, "limit", pass FROM _duckanon_verdict WHERE (SELECT is_kept FROM _duckanon_decision)
ORDER BY place ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.require IS
    'The rows of anon.verdict, or an error that names the broken promises, so that a job stops by itself.';
