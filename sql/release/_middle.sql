-- anon._middle: the midpoint of two numbers; the other one where one is infinite, NULL where both are.
CREATE OR REPLACE MACRO anon._middle(low, high) AS
    CASE WHEN low = high THEN low
         WHEN isinf(low) AND isinf(high) THEN NULL
         WHEN isinf(low) THEN high
         WHEN isinf(high) THEN low
         ELSE low * 0.5::DOUBLE + high * 0.5::DOUBLE END;
