-- anon._uncollated: true for a column that compares texts as they are, an error for one with a COLLATE of its own: to
-- NOCASE, 'F' and 'f' are the same in GROUP BY and =, and yet a release tells them apart. DuckDB does not say whether a
-- column has a collation, so it is tried on 'z' and the sign of kelvin (U+212A). The sign comes after every ASCII
-- letter, but it is a K to NFC and NOACCENT, and a k to NOCASE and in every language. The optimizer compares them
-- before any row is read.
CREATE OR REPLACE MACRO anon._uncollated(caller, value) AS
    CASE WHEN CASE WHEN true THEN 'z' ELSE CAST(value AS VARCHAR) END < 'K' THEN true
         ELSE error(concat(caller, ': columns must not have a collation, since people whose values differ would be '
                                  || 'counted as alike; got one in "', alias(value),
                           '": use a view with decode(encode(x)) for it.')) END;
