-- anon.shift_date: a date or timestamp shifted by a number of days that is the same for all dates of a person: the time
-- between two of them stays exactly as it was. The shift follows from the person and the key by HMAC-SHA-256.
--     day       date to shift; its type is kept. NULL stays NULL; infinity and the year 9999, which stand for no end,
--               stay too: shifted, they would disclose the shift [a date or timestamp]
--     person    whose date it is; where it is NULL, the result is NULL [any value]
--     key       secret: whoever has it can compute all shifts [a text or BLOB of at least 16 bytes]
--     max_days  the shift is from -max_days to max_days, and never 0 [a whole number from 1 to 36,500]
-- test: tests/pseudonymize/shift_date.test
CREATE OR REPLACE MACRO anon.shift_date(day, person, key, max_days := 365) AS
    CASE WHEN coalesce(NOT regexp_full_match(CAST(max_days AS VARCHAR), '[1-9]\d{0,4}')
                       OR TRY_CAST(max_days AS BIGINT) > 36_500, true)
              THEN anon._refused_day('max_days', 'a whole number from 1 to 36500', max_days, day)
         WHEN typeof(day) NOT IN ('DATE', 'TIMESTAMP', 'TIMESTAMP_S', 'TIMESTAMP_MS', 'TIMESTAMP_NS',
                                  'TIMESTAMP WITH TIME ZONE')
              THEN anon._refused_day('day', 'a DATE or TIMESTAMP', typeof(day), day)
         WHEN octet_length(anon._key_bytes('anon.shift_date', key)) > 0 AND anon._is_no_end(day) THEN day
         ELSE anon._shifted(day, anon._shift_days(person, key, TRY_CAST(max_days AS BIGINT))) END;
COMMENT ON MACRO anon.shift_date IS
    'A date shifted by a secret number of days, the same for all dates of a person, so that intervals stay.';
