-- anon._exact_number: a number as the double nearest to what its text says, NULL for what is no number: a FLOAT of 0.7
-- is 0.7, and not the double 0.699999988079071 that its bits make. Through the text go the types that DuckDB does not
-- cast to the nearest double, and those whose bits it would take for one (BIT). Types are known when the query is
-- bound, so that one cast is left in it.
CREATE OR REPLACE MACRO anon._exact_number(value) AS
    CASE WHEN regexp_matches(typeof(value), '^(DOUBLE|U?(TINY|SMALL|BIG)?INT(EGER)?|DECIMAL\((\d|1[0-5]),\d+\))$')
              THEN TRY_CAST(value AS DOUBLE)
         ELSE TRY_CAST(CAST(value AS VARCHAR) AS DOUBLE) END;
