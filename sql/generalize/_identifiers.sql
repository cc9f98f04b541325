-- anon._identifiers: a list of the columns beside `cols` that look like direct identifiers, such as names and numbers
-- that a person is known by, and that are not named in `keep`. Dates, places and ages are left to `cols`.
CREATE OR REPLACE MACRO anon._identifiers(tbl, cols, keep) AS TABLE
SELECT list(DISTINCT column_name ORDER BY column_name ASC NULLS LAST)
FROM anon.direct_identifiers(tbl)
WHERE category NOT IN ('geographic_subdivision', 'zip', 'date', 'age_over_89')
  AND NOT anon._is_among(column_name, anon._with_columns(cols, coalesce(keep, [])));
