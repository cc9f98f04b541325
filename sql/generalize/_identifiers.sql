-- anon._identifiers: the columns of a table beside `cols` that look like direct identifiers, such as names and numbers
-- that anyone is known by, and are not to be kept: a list. (Dates, places and ages are not: they belong into `cols`.)
CREATE OR REPLACE MACRO anon._identifiers(tbl, cols, keep) AS TABLE
SELECT list(DISTINCT column_name ORDER BY column_name)
FROM anon.direct_identifiers(tbl)
WHERE category NOT IN ('geographic_subdivision', 'zip', 'date', 'age_over_89')
  AND NOT list_contains(list_transform(list_concat(TRY_CAST(cols AS VARCHAR[]), coalesce(keep, [])), lambda c: lower(c)), lower(column_name));
