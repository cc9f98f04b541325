-- anon._label_leaves: which of the original's values a released label stands for, one row each: those below it in the
-- hierarchy, itself, the members of '{a, b}', and where none of these is known, the values that begin like '021**'. In
-- '{a, other}' the last are those that no label names. The labels '*' and 'other' are left to the caller; values that
-- look like a label are in quotation marks (anon._read_labels). Prefixes are looked up by their lengths, which are
-- few.
--     value_counts, spans, labels, leaves  names of steps: anon._value_counts and anon._column_spans of the original,
--                                          the released labels, the hierarchies
CREATE OR REPLACE MACRO anon._label_leaves(value_counts, spans, labels, leaves) AS TABLE
WITH _duckanon_keys AS (                               -- numbers are compared as numbers: 17 is 17.0
    SELECT place, value, number, CASE WHEN kind = 'numeric' THEN CAST(number AS VARCHAR) ELSE value END AS leaf
    FROM query_table(value_counts) WHERE value IS NOT NULL
), _duckanon_asked AS (
    SELECT place, kind, is_ordered, label FROM query_table(labels) JOIN query_table(spans) USING (place)
    WHERE label IS NOT NULL AND label <> '*'
), _duckanon_members AS (
    SELECT place, label, CASE WHEN kind = 'numeric' THEN CAST(TRY_CAST(leaf AS DOUBLE) AS VARCHAR) ELSE leaf END AS leaf
    FROM query_table(leaves) JOIN _duckanon_asked USING (place, label)
    UNION
    SELECT place, label, label FROM _duckanon_asked WHERE NOT is_ordered AND anon._value_label(label) = label
    UNION
    SELECT place, label, unnest(anon._label_members(label)) FROM _duckanon_asked
    WHERE NOT is_ordered AND label[1] = '{' AND label[-1] = '}'
), _duckanon_named AS MATERIALIZED (
    SELECT place, label, value, number FROM _duckanon_members JOIN _duckanon_keys USING (place, leaf)
), _duckanon_prefixes AS (
    SELECT place, label, rtrim(label, '*') AS prefix, length(rtrim(label, '*')) AS prefix_length
    FROM _duckanon_asked ANTI JOIN _duckanon_named USING (place, label)
    WHERE NOT is_ordered AND label <> 'other'
), _duckanon_beginnings AS (
    SELECT place, value, number, prefix_length, left(value, prefix_length) AS prefix
    FROM (SELECT DISTINCT place, prefix_length FROM _duckanon_prefixes) JOIN _duckanon_keys USING (place)
)
FROM _duckanon_named
UNION ALL                                              -- rare values, which no set of the column names (anon.recode)
SELECT place, label, value, number
FROM (SELECT place, label FROM _duckanon_asked
      WHERE NOT is_ordered AND regexp_matches(label, '^\{(.*, )?other(, NULL)?\}$')) AS unnamed
JOIN (FROM _duckanon_keys ANTI JOIN _duckanon_named USING (place, value)) AS rare USING (place)
UNION ALL
SELECT place, label, value, number
FROM _duckanon_prefixes JOIN _duckanon_beginnings USING (place, prefix_length, prefix);
