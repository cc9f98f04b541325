-- anon._unfit: a list of those columns of `cols`, with their types, whose type cannot become the text of a label: where
-- they meet text DuckDB does not turn them into text, or they do not reach Python as numbers (BIGNUM).
CREATE OR REPLACE MACRO anon._unfit(tbl, cols) AS TABLE
SELECT list('"' || column_name || '", ' || column_type || ',' ORDER BY place ASC NULLS LAST)
FROM anon._columns(tbl)
WHERE anon._is_among(column_name, cols)
  AND (column_type IN ('UUID', 'BLOB', 'BIT', 'INTERVAL', 'BIGNUM')
       OR regexp_matches(column_type, '^(STRUCT|MAP|UNION)\(|\]$'));
