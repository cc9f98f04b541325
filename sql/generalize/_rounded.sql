-- anon._rounded: a number with so many decimal digits, or a multiple of a power of ten where `digits` is negative.
-- Powers below one are divided by: 0.001 is no double.
--     is_down  whether it must not become larger; else the nearest one
CREATE OR REPLACE MACRO anon._rounded(number, digits, is_down) AS
    CASE WHEN digits >= 0 AND is_down THEN floor(number * pow(10, digits)) / pow(10, digits)
         WHEN digits >= 0 THEN round(number * pow(10, digits)) / pow(10, digits)
         WHEN is_down THEN floor(number / pow(10, -digits)) * pow(10, -digits)
         ELSE round(number / pow(10, -digits)) * pow(10, -digits) END;
