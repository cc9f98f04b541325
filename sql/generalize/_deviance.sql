-- anon._deviance: x ln(x / m) + m - x, the letters of C. Loader; by its series where x is so near to m that the
-- difference would have no digits left.
CREATE OR REPLACE MACRO anon._deviance(x, m) AS
    CASE WHEN abs(x - m) < 0.001 * (x + m)
              THEN (x - m) * (x - m) / (x + m)
                   + 2 * x * pow((x - m) / (x + m), 3)
                     * (1 / 3.0 + pow((x - m) / (x + m), 2) / 5 + pow((x - m) / (x + m), 4) / 7)
         ELSE x * ln(x / m) + m - x END;
