-- anon._uncollated: true for a column that compares texts as they are, an error for one with a COLLATE of its own: to
-- NOCASE, 'F' and 'f' are the same in GROUP BY and =, and yet a release tells them apart. DuckDB does not say whether a
-- column has a collation, so it is tried on two pairs of texts, which differ in case and in how an accent is written;
-- the optimizer does so before any row is read.
CREATE OR REPLACE MACRO anon._uncollated(caller, value) AS
    CASE WHEN CASE WHEN true THEN 'B' ELSE CAST(value AS VARCHAR) END < 'a'
              AND CASE WHEN true THEN 'e' || chr(769) ELSE CAST(value AS VARCHAR) END < 'é' THEN true
         ELSE error(caller || ': columns must not have a collation, since people whose values differ would be '
                    || 'counted as alike; got one in "' || alias(value)
                    || '": use a view with decode(encode(x)) for it.') END;
