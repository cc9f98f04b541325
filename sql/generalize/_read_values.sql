-- anon._read_values: the values of a table (anon._value_counts) as the labels of its release read them: a column of
-- numbers that was released as codes, frequent ones and 'other' or prefixes, counts as text.
--     labels  name of a step: place and label
CREATE OR REPLACE MACRO anon._read_values(tbl, labels, cols) AS TABLE
WITH _duckanon_codes AS (
    SELECT DISTINCT place, true AS is_code FROM query_table(labels)
    WHERE label = 'other' OR regexp_matches(label, '^-?[\w.]+\*+$')
)
SELECT place, CASE WHEN is_code AND kind = 'numeric' THEN 'text' ELSE kind END AS kind, value,
       CASE WHEN is_code AND kind = 'numeric' THEN NULL ELSE number END AS number, size
FROM anon._value_counts(tbl, cols) LEFT JOIN _duckanon_codes USING (place);
