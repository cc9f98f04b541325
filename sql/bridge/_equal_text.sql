-- anon._equal_text: the text of a value, the same for numbers that are equal: -0.0 is written as 0.0, and NaN without a
-- sign.
CREATE OR REPLACE MACRO anon._equal_text(value) AS
    CASE WHEN typeof(value) IN ('DOUBLE', 'FLOAT') AND TRY_CAST(value AS DOUBLE) = 0 THEN '0.0'
         WHEN typeof(value) IN ('DOUBLE', 'FLOAT') AND isnan(TRY_CAST(value AS DOUBLE)) THEN 'nan'
         ELSE CAST(value AS VARCHAR) END;
