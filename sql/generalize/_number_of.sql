-- anon._number_of: the place of a value, given as text, on the number line: numbers themselves, dates and timestamps in
-- microseconds since 1970 (the offset of a time zone is cut off, what stays is the time of the session's zone).
CREATE OR REPLACE MACRO anon._number_of(value, kind) AS
    CASE kind WHEN 'numeric' THEN TRY_CAST(value AS DOUBLE)
              WHEN 'date' THEN CAST(epoch_us(TRY_CAST(regexp_replace(value, '(:\d\d(\.\d+)?)[+-]\d\d(:\d\d)*$', '\1')
                                                      AS TIMESTAMP)) AS DOUBLE) END;
