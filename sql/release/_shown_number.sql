-- anon._shown_number: a number of a table that was given away, whatever its type; NULL: its cell is hidden. A
-- value that is no number is refused, and not quoted: the column may be another than was meant.
CREATE OR REPLACE MACRO anon._shown_number(caller, parameter, shown) AS
    CASE WHEN shown IS NULL OR NOT coalesce(isinf(TRY_CAST(shown AS DOUBLE)), true) THEN TRY_CAST(shown AS DOUBLE)
         ELSE error(concat(caller, ': ', parameter, ' must have numbers in its column "', alias(shown),
                           '", and NULL in hidden cells.')) END;
