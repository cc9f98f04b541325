-- anon._days: a value as a number: times in days since 1970 (UTC), numbers as doubles.
CREATE OR REPLACE MACRO anon._days(value) AS
    anon._plan_number(value) / CASE WHEN anon._kind(typeof(value)) = 'date' THEN 86400000000 ELSE 1 END;
