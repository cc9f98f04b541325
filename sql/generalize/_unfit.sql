-- anon._unfit: the columns of `cols` whose type cannot become the text of a label, with the type, as a list: DuckDB
-- does not make them text when it meets text.
CREATE OR REPLACE MACRO anon._unfit(tbl, cols) AS TABLE
SELECT list('"' || column_name || '", ' || column_type || ',' ORDER BY place)
FROM anon._columns(tbl)
WHERE list_contains(list_transform(cols, lambda c: lower(c)), lower(column_name))
  AND (column_type IN ('UUID', 'BLOB', 'BIT', 'INTERVAL') OR regexp_matches(column_type, '^(STRUCT|MAP|UNION)\(|\]$'));
