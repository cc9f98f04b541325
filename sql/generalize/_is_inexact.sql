-- anon._is_inexact: whether the number of anon._plan_number may be that of another value too: whole numbers from 2^53
-- on, decimals of more than 15 digits, moments so far from 1970 that a double does not hold their microseconds. Nothing
-- of it is left in the query for types of which a double holds all values.
CREATE OR REPLACE MACRO anon._is_inexact(value) AS
    CASE WHEN typeof(value) IN ('BIGINT', 'UBIGINT', 'HUGEINT', 'UHUGEINT', 'BIGNUM')
              THEN abs(TRY_CAST(value AS DOUBLE)) >= pow(2, 53)
         WHEN TRY_CAST(regexp_extract(typeof(value), '^DECIMAL\((\d+)', 1) AS INTEGER) > 15
              THEN length(trim(regexp_replace(CAST(value AS VARCHAR), '[-.]', '', 'g'), '0')) > 15
         WHEN starts_with(typeof(value), 'TIMESTAMP')
              THEN abs(anon._plan_number(value)) >= pow(2, 53)      -- whole seconds are doubles up to the year 9999
                   AND date_part('microseconds', TRY_CAST(value AS TIMESTAMP)) % 1_000_000 <> 0
         ELSE false END;
