-- anon._is_fit: true for a column that can be generalized, an error for one whose type cannot become the text of a
-- label: where it meets text DuckDB does not turn it into text, or it does not reach Python as a number (BIGNUM).
CREATE OR REPLACE MACRO anon._is_fit(caller, column_name, value) AS
    CASE WHEN regexp_matches(typeof(value), '^(UUID|BLOB|BIT|INTERVAL|BIGNUM)$|^(STRUCT|MAP|UNION)\(|\]$')
              THEN error(caller || ': column "' || column_name || '", ' || typeof(value)
                         || ', has a type that cannot be generalized; cast it to VARCHAR first.')
         ELSE true END;
