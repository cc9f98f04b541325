-- anon._plan_number: a value as the number by which a plan finds its bucket: times in microseconds since 1970 (UTC),
-- numbers as doubles, NULL for everything else. Types are known when the query is bound, so that only one of the casts
-- is left in it. (DuckDB 1.5 does not cast long decimals to the nearest double, except through text.)
CREATE OR REPLACE MACRO anon._plan_number(value) AS
    CASE WHEN typeof(value) = 'TIMESTAMP WITH TIME ZONE' THEN CAST(epoch_us(TRY_CAST(value AS TIMESTAMPTZ)) AS DOUBLE)
         WHEN anon._kind(typeof(value)) = 'date' THEN CAST(epoch_us(TRY_CAST(value AS TIMESTAMP)) AS DOUBLE)
         WHEN TRY_CAST(regexp_extract(typeof(value), '^DECIMAL\((\d+)', 1) AS INTEGER) > 18
              THEN TRY_CAST(CAST(value AS VARCHAR) AS DOUBLE)
         ELSE TRY_CAST(value AS DOUBLE) END;
