-- anon._interval_or_exact: 'interval' where a column holds intervals, a STRUCT(lo, hi), 'exact' otherwise.
CREATE OR REPLACE MACRO anon._interval_or_exact(value) AS
    CASE WHEN anon._is_interval_type(anon._type_of(value)) THEN 'interval' ELSE 'exact' END;
