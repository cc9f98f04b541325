-- anon._label_rules: which values every label of a release holds, as rules that a join can use.
--     place, label, number   of the column in `cols`; the label and its number in the column, from 1
--     rule       'everything'  '*', and NULL where nobody has one
--                'interval'    of numbers and dates: from held_from to held_to
--                'listed'      one row for each value that it holds; 'nothing' where there is none
--     is_exact   of the column: apart from the labels for everything, no value is held by two
--     people, shown   names of steps: a table with all values that are asked for, and the different labels (place,
--                     label)
-- Labels are read as anon.generalization_loss reads them, which refuses those that it does not understand.
CREATE OR REPLACE MACRO anon._label_rules(caller, people, shown, cols, hierarchies) AS TABLE
WITH _duckanon_labels AS MATERIALIZED (
    SELECT place, label, 1 AS size, row_number() OVER (PARTITION BY place ORDER BY label) AS number FROM query_table(shown)
), _duckanon_names AS MATERIALIZED (
    SELECT unnest(range(1, 1 + len(cols))) AS place, unnest(cols) AS column_name
), _duckanon_codes AS (                                -- numbers that were released as codes: frequent ones, prefixes
    SELECT DISTINCT place, true AS is_code FROM _duckanon_labels WHERE label = 'other' OR regexp_matches(label, '^-?[\w.]+\*+$')
), _duckanon_values AS MATERIALIZED (
    SELECT place, CASE WHEN is_code AND kind = 'numeric' THEN 'text' ELSE kind END AS kind, value,
           CASE WHEN is_code AND kind = 'numeric' THEN NULL ELSE number END AS number, size
    FROM anon._value_counts(people, cols) LEFT JOIN _duckanon_codes USING (place)
), _duckanon_spans AS MATERIALIZED (
    FROM anon._column_spans('_duckanon_values')
), _duckanon_leaves AS (
    SELECT place, h.leaf, h.label
    FROM anon._hierarchies(caller, hierarchies) AS h JOIN _duckanon_names AS n ON h.column_name = lower(n.column_name)
), _duckanon_held AS MATERIALIZED (                    -- ncp is looked at because it refuses labels that are not understood
    SELECT place, label, is_held, held_from, held_to
    FROM anon._label_losses(caller, '_duckanon_values', '_duckanon_spans', '_duckanon_labels', '_duckanon_leaves',
                            '_duckanon_names')
    WHERE ncp >= 0
), _duckanon_covered AS MATERIALIZED (
    SELECT DISTINCT place, label, value FROM anon._label_leaves('_duckanon_values', '_duckanon_spans', '_duckanon_labels', '_duckanon_leaves')
), _duckanon_listed AS MATERIALIZED (
    FROM _duckanon_covered
    UNION ALL                                          -- NULL is a value
    SELECT place, NULL, NULL FROM _duckanon_labels JOIN _duckanon_spans USING (place) WHERE label IS NULL AND has_null
    UNION ALL                                          -- the rest, NULL too where it is not released
    SELECT v.place, 'other', v.value
    FROM _duckanon_labels AS l JOIN _duckanon_spans AS s ON l.place = s.place AND l.label = 'other' AND NOT s.is_ordered
    JOIN _duckanon_values AS v ON v.place = l.place
    LEFT JOIN (SELECT DISTINCT place, value, true AS is_named FROM _duckanon_covered) AS c
           ON c.place = v.place AND c.value = v.value
    LEFT JOIN (SELECT DISTINCT place, true AS is_shown FROM _duckanon_labels WHERE label IS NULL) AS n ON n.place = v.place
    WHERE is_named IS NULL AND (v.value IS NOT NULL OR is_shown IS NULL)
), _duckanon_rules AS MATERIALIZED (
    SELECT l.place, l.label, l.number,
           CASE WHEN l.label = '*' OR (l.label IS NULL AND NOT s.has_null) THEN 'everything'
                WHEN m.is_listed IS NULL AND h.is_held THEN 'interval' ELSE 'listed' END AS rule,
           h.held_from, h.held_to
    FROM _duckanon_labels AS l JOIN _duckanon_spans AS s ON l.place = s.place
    JOIN _duckanon_held AS h ON h.place = l.place AND h.label IS NOT DISTINCT FROM l.label
    LEFT JOIN (SELECT DISTINCT place, label, true AS is_listed FROM _duckanon_covered) AS m
           ON m.place = l.place AND m.label = l.label
), _duckanon_clashes AS (                              -- columns in which a value may have two labels
    SELECT place FROM _duckanon_listed WHERE label IS DISTINCT FROM '*' GROUP BY place, value HAVING count(*) > 1
    UNION
    SELECT place FROM (SELECT place, held_from, max(held_to) OVER (PARTITION BY place ORDER BY held_from, held_to
                                                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
                       FROM _duckanon_rules WHERE rule = 'interval') WHERE held_from <= before
    UNION
    SELECT place FROM _duckanon_rules WHERE rule <> 'everything' AND label IS NOT NULL GROUP BY place HAVING count(DISTINCT rule) > 1
)
SELECT r.place, r.label, r.number, CASE WHEN r.rule = 'listed' AND l.place IS NULL THEN 'nothing' ELSE r.rule END AS rule,
       r.held_from, r.held_to, l.value, c.place IS NULL AS is_exact
FROM _duckanon_rules AS r LEFT JOIN (SELECT DISTINCT place FROM _duckanon_clashes) AS c ON c.place = r.place
LEFT JOIN _duckanon_listed AS l ON r.rule = 'listed' AND l.place = r.place AND l.label IS NOT DISTINCT FROM r.label;
