-- anon._checked_quantiles: passes `result` on where `quantiles` is a list of numbers from 0 to 1, refuses it
-- otherwise.
CREATE OR REPLACE MACRO anon._checked_quantiles(caller, quantiles, result) AS
    CASE WHEN ends_with(typeof(quantiles), ']') AND len(TRY_CAST(quantiles AS DOUBLE[])) > 0
              AND len(list_filter(TRY_CAST(quantiles AS DOUBLE[]), lambda share: share BETWEEN 0 AND 1))
                  = len(TRY_CAST(quantiles AS DOUBLE[])) THEN result
         ELSE error(anon._must_be(caller, 'quantiles', 'a list of numbers from 0 to 1 such as [0.25, 0.5, 0.75]',
                                  quantiles)) END;
