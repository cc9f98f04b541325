-- anon._regression_columns: the target's column and the predictors', also where these are no list: such a call is bound
-- before it is refused (anon._checked_regression).
CREATE OR REPLACE MACRO anon._regression_columns(target, predictors) AS
    list_concat([CAST(target AS VARCHAR)], TRY_CAST(predictors AS VARCHAR[]));
