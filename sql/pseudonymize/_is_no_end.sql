-- anon._is_no_end: whether a day stands for no end, or no beginning: infinity, and 9999-12-31 as many databases have
-- it. A moment with a time zone is looked at in UTC, so that no setting counts; the largest days are no moments.
CREATE OR REPLACE MACRO anon._is_no_end(day) AS
    coalesce(CASE WHEN typeof(day) = 'DATE'
                       THEN isinf(TRY_CAST(day AS DATE)) OR TRY_CAST(day AS DATE) >= DATE '9999-01-01'
                  WHEN typeof(day) = 'TIMESTAMP WITH TIME ZONE'
                       THEN isinf(TRY_CAST(day AS TIMESTAMPTZ))
                            OR epoch_us(TRY_CAST(day AS TIMESTAMPTZ)) >= epoch_us(TIMESTAMP '9999-01-01 00:00:00')
                  ELSE isinf(TRY_CAST(day AS TIMESTAMP))
                       OR TRY_CAST(day AS TIMESTAMP) >= TIMESTAMP '9999-01-01 00:00:00' END, false);
