-- anon._interval_of: an interval from its ends, in the type that holds both: a CSV file may have 1 and 2.5.
CREATE OR REPLACE MACRO anon._interval_of(low, high) AS
    struct_pack(lo := CASE WHEN true THEN low ELSE high END, hi := CASE WHEN true THEN high ELSE low END);
