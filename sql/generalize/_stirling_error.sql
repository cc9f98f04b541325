-- anon._stirling_error: how far ln(x!) is from Stirling's formula: by its series from 16 on, directly below.
CREATE OR REPLACE MACRO anon._stirling_error(x) AS
    CASE WHEN x < 16 THEN lgamma(x + 1) - (x + 0.5) * ln(greatest(x, 1e-300)) + x - 0.5 * ln(2 * pi())
         ELSE (1 / 12.0 - (1 / 360.0 - (1 / 1260.0 - 1 / 1680.0 / (x * x)) / (x * x)) / (x * x)) / x END;
