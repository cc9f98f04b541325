-- anon._shifted: a day or moment so many days of 24 hours later, in its own type; NULL where this has no such moment.
-- Moments with a time zone are moved by hours: a day of a place with summer time may have 23.
CREATE OR REPLACE MACRO anon._shifted(day, days) AS
    CASE WHEN typeof(day) = 'DATE' THEN cast_to_type(TRY(TRY_CAST(day AS DATE) + CAST(days AS INTEGER)), day)
         WHEN typeof(day) = 'TIMESTAMP WITH TIME ZONE'
              THEN cast_to_type(TRY(TRY_CAST(day AS TIMESTAMPTZ) + to_hours(24 * days)), day)
         WHEN typeof(day) = 'TIMESTAMP_NS'
              THEN cast_to_type(make_timestamp_ns(TRY_CAST(CAST(epoch_ns(TRY_CAST(day AS TIMESTAMP_NS)) AS HUGEINT)
                                                           + days * 86_400_000_000_000::HUGEINT AS BIGINT)), day)
         ELSE cast_to_type(TRY(TRY_CAST(day AS TIMESTAMP) + to_days(CAST(days AS INTEGER))), day) END;
