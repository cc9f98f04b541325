-- anon._signed_shift: a number from 0 to 2 * max_days - 1 as a shift: -max_days to -1, or 1 to max_days.
CREATE OR REPLACE MACRO anon._signed_shift(place, max_days) AS
    place - max_days + CASE WHEN place >= max_days THEN 1 ELSE 0 END;
