-- anon._decimals: how many digits a number has after the decimal point when it is written without an exponent, trailing
-- zeros not counted.
CREATE OR REPLACE MACRO anon._decimals(number) AS
    greatest(0, length(regexp_extract(CAST(number AS VARCHAR), '\.(\d*[1-9])', 1))
                - coalesce(TRY_CAST(regexp_extract(CAST(number AS VARCHAR), 'e(.*)', 1) AS INTEGER), 0))::INTEGER;
