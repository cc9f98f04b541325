-- anon._middle_time: the midpoint of an interval of days or moments, to the microsecond.
CREATE OR REPLACE MACRO anon._middle_time(ends) AS
    make_timestamp(CAST(epoch_us(TRY_CAST(ends.lo AS TIMESTAMP)) AS BIGINT)
                   + (CAST(epoch_us(TRY_CAST(ends.hi AS TIMESTAMP)) AS BIGINT)
                      - CAST(epoch_us(TRY_CAST(ends.lo AS TIMESTAMP)) AS BIGINT)) // 2);
