-- anon._middle_zoned: the midpoint of an interval of moments with a time zone, to the microsecond.
CREATE OR REPLACE MACRO anon._middle_zoned(ends) AS
    to_timestamp(0) + to_microseconds(CAST(epoch_us(TRY_CAST(ends.lo AS TIMESTAMPTZ)) AS BIGINT)
                                      + (CAST(epoch_us(TRY_CAST(ends.hi AS TIMESTAMPTZ)) AS BIGINT)
                                         - CAST(epoch_us(TRY_CAST(ends.lo AS TIMESTAMPTZ)) AS BIGINT)) // 2);
