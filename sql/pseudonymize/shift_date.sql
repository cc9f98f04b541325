-- anon.shift_date: a date or timestamp shifted by a number of days that is the same for all dates of a person: the time
-- between two of them stays exactly as it was. The shift follows from the person and the key by HMAC-SHA-256.
--     day       date to shift; its type is kept. NULL stays NULL; infinity and the year 9999, which stand for no end,
--               stay too: shifted, they would disclose the shift [a date or timestamp]
--     person    whose date it is; where it is NULL, the result is NULL [any value]
--     key       secret: whoever has it can compute all shifts [a text or BLOB of at least 16 bytes]
--     max_days  the shift is from -max_days to max_days, and never 0 [a whole number from 1 to 36,500]
-- promises: FunctionOfValue()
-- test: tests/pseudonymize/shift_date.test
-- No end, or no beginning, is infinity, and 9999-12-31 as many databases have it; a moment with a time zone is looked
-- at in UTC, so that no setting counts. A shift has days of 24 hours, and is NULL where the type has no such moment:
-- moments with a time zone are moved by hours, since a day of a place with summer time may have 23. Beside a text an
-- untyped NULL has a type.
CREATE OR REPLACE MACRO anon.shift_date(day, person, key, max_days := 365) AS
    CASE WHEN coalesce(NOT regexp_full_match(CAST(max_days AS VARCHAR), '[1-9]\d{0,4}')
                       OR TRY_CAST(CAST(max_days AS VARCHAR) AS INTEGER) > 36_500, true)
              THEN anon._like(
                       anon._refused('anon.shift_date', 'max_days', 'a whole number from 1 to 36500', max_days), day)
         WHEN typeof(day) NOT IN ('DATE', 'TIMESTAMP', 'TIMESTAMP_S', 'TIMESTAMP_MS', 'TIMESTAMP_NS',
                                  'TIMESTAMP WITH TIME ZONE', '"NULL"')
              THEN anon._like(anon._refused_cell('anon.shift_date', 'day', 'a DATE or TIMESTAMP', day), day)
         -- what follows may have no moment of the type, and TRY would take a refusal for that
         WHEN octet_length(anon._key_bytes('anon.shift_date', key)) > 0
              AND octet_length(anon._value_bytes('anon.shift_date', 'person', person)) >= 0
              AND coalesce(CASE WHEN typeof(day) = 'DATE'
                                     THEN isinf(TRY_CAST(day AS DATE)) OR TRY_CAST(day AS DATE) >= DATE '9999-01-01'
                                WHEN typeof(day) = 'TIMESTAMP WITH TIME ZONE'
                                     THEN isinf(TRY_CAST(day AS TIMESTAMPTZ))
                                          OR epoch_us(TRY_CAST(day AS TIMESTAMPTZ))
                                             >= epoch_us(TIMESTAMP '9999-01-01 00:00:00')
                                ELSE isinf(TRY_CAST(day AS TIMESTAMP))
                                     OR TRY_CAST(day AS TIMESTAMP) >= TIMESTAMP '9999-01-01 00:00:00' END, false)
              THEN day
         WHEN typeof(day) = 'TIMESTAMP_NS'
              THEN anon._like(make_timestamp_ns(TRY_CAST(
                       CAST(epoch_ns(TRY_CAST(day AS TIMESTAMP_NS)) AS HUGEINT)
                       + anon._shift_days(person, key, max_days) * 86_400_000_000_000::HUGEINT AS BIGINT)), day)
         ELSE anon._like(TRY(
                  cast_to_type(day, struct_extract({'date': NULL::DATE, 'zoned': NULL::TIMESTAMPTZ,
                                                    'time': NULL::TIMESTAMP},
                                                   CASE typeof(coalesce(day, ''))
                                                       WHEN 'DATE' THEN 'date'
                                                       WHEN 'TIMESTAMP WITH TIME ZONE' THEN 'zoned'
                                                       ELSE 'time' END))
                  + anon._shift_days(person, key, max_days)
                    * struct_extract({'date': 1, 'zoned': to_hours(24), 'time': to_days(1)},
                                     CASE typeof(coalesce(day, ''))
                                         WHEN 'DATE' THEN 'date'
                                         WHEN 'TIMESTAMP WITH TIME ZONE' THEN 'zoned'
                                         ELSE 'time' END)), day) END;
COMMENT ON MACRO anon.shift_date IS
    'A date shifted by a secret number of days, the same for all dates of a person, so that intervals stay.';
