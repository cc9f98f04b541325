-- anon._figure: a number as a sentence has it: whole, or with three digits that count.
CREATE OR REPLACE MACRO anon._figure(value) AS
    CASE WHEN value = 0 OR abs(value) >= 100 OR value = round(value) THEN format('{:,.0f}', round(value))
         ELSE format('{:.3g}', CAST(value AS DOUBLE)) END;
