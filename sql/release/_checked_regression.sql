-- anon._checked_regression: the name of the table, after a look at it, the target, the predictors and the weights.
CREATE OR REPLACE MACRO anon._checked_regression(caller, tbl, target, predictors, weights) AS
    anon._checked_table(caller, 'tbl', tbl,
        CASE WHEN typeof(target) <> 'VARCHAR'
                  THEN error(anon._must_be(caller, 'target', 'the name of a column', target))
             WHEN ends_with(typeof(predictors), ']') AND len(TRY_CAST(predictors AS VARCHAR[])) = 0
                  THEN error(caller || ': predictors must name at least one column; got an empty list.')
             WHEN NOT regexp_full_match(typeof(predictors), 'VARCHAR\[\d*\]')
                  THEN error(anon._must_be(caller, 'predictors', 'a list of column names such as [''age'', ''bmi'']',
                                           predictors))
             WHEN len(list_filter(TRY_CAST(predictors AS VARCHAR[]), lambda named: named IS NULL)) > 0
                  THEN error(caller || ': predictors must be a list of column names; got a NULL among them.')
             WHEN len(list_distinct(list_transform(TRY_CAST(predictors AS VARCHAR[]), lambda named: lower(named))))
                  < len(TRY_CAST(predictors AS VARCHAR[]))
                  THEN error(anon._must_be(caller, 'predictors', 'different columns', predictors))
             WHEN list_contains(list_transform(TRY_CAST(predictors AS VARCHAR[]), lambda named: lower(named)),
                                lower(CAST(target AS VARCHAR)))
                  THEN error(anon._must_be(caller, 'predictors', 'columns other than the target', predictors))
             ELSE anon._checked_weights(caller, weights, anon._regression_columns(target, predictors),
                                        CAST(tbl AS VARCHAR)) END);
