-- anon._label_rules: which values every label of a release holds, as rules that a join can use.
--     place, label, number   of the column in `cols`; the label and its number in the column, from 1
--     rule       'everything'  '*', and NULL where nobody has one
--                'interval'    of numbers and dates: from held_from to held_to
--                'listed'      one row for each value that it holds; 'nothing' where there is none
--     people, shown   names of steps: a table with all values that are asked for, and the different labels (place,
--                     label, and size, the rows that have it)
-- anon._exact_rules says where labels overlap. Labels are read as anon.generalization_loss reads them, which refuses
-- those that it does not understand.
CREATE OR REPLACE MACRO anon._label_rules(caller, people, shown, cols, hierarchies) AS TABLE
WITH _duckanon_names AS MATERIALIZED (
    SELECT unnest(range(1, 1 + len(cols))) AS place, unnest(cols) AS column_name
), _duckanon_values AS MATERIALIZED (
    FROM anon._read_values(people, shown, cols)
), _duckanon_readings AS MATERIALIZED (
    FROM anon._read_labels(shown, '_duckanon_values')
), _duckanon_labels AS MATERIALIZED (
    SELECT place, reading AS label, size FROM _duckanon_readings
), _duckanon_spans AS MATERIALIZED (
    FROM anon._column_spans('_duckanon_values')
), _duckanon_leaves AS (
    FROM anon._hierarchy_leaves(caller, hierarchies, '_duckanon_names')
), _duckanon_covered AS MATERIALIZED (
    FROM anon._label_leaves('_duckanon_values', '_duckanon_spans', '_duckanon_labels', '_duckanon_leaves')
), _duckanon_rules AS MATERIALIZED (                   -- ncp refuses labels that are not understood, if it is asked for
    SELECT place, label, is_ordered, has_null, held_from, held_to,
           row_number() OVER (PARTITION BY place ORDER BY label ASC NULLS LAST) AS number,
           CASE WHEN label = '*' OR (label IS NULL AND NOT has_null) THEN 'everything'
                WHEN stands_for IS NULL AND is_held THEN 'interval' ELSE 'listed' END AS rule,
           bool_or(label IS NULL OR (NOT is_ordered AND label LIKE '{%, NULL}')) OVER (PARTITION BY place)
               AS null_shown                           -- some label of the column names NULL
    FROM anon._label_losses(caller, '_duckanon_spans', '_duckanon_labels', '_duckanon_covered', '_duckanon_names')
    WHERE ncp >= 0
), _duckanon_listed AS (
    SELECT DISTINCT place, label, value FROM _duckanon_covered
    UNION ALL                                          -- NULL is a value: alone, the last of a set, of the rest
    SELECT place, label, NULL FROM _duckanon_rules
    WHERE has_null AND (label IS NULL OR (NOT is_ordered AND label LIKE '{%, NULL}')
                        OR (NOT is_ordered AND NOT null_shown AND regexp_matches(label, '^\{(.*, )?other\}$')))
    UNION ALL                                          -- the rest, NULL too where it is not released
    SELECT place, 'other', value
    FROM (FROM _duckanon_values ANTI JOIN _duckanon_covered USING (place, value))
    JOIN (SELECT place, null_shown FROM _duckanon_rules WHERE label = 'other' AND NOT is_ordered) USING (place)
    WHERE value IS NOT NULL OR NOT null_shown
)
SELECT rules.place, readings.label, rules.number,
       CASE WHEN rules.rule = 'listed' AND listed.place IS NULL THEN 'nothing' ELSE rules.rule END AS rule,
       rules.held_from, rules.held_to, listed.value
FROM _duckanon_rules AS rules
JOIN _duckanon_readings AS readings
     ON readings.place = rules.place AND readings.reading IS NOT DISTINCT FROM rules.label
LEFT JOIN _duckanon_listed AS listed
       ON rules.rule = 'listed' AND listed.place = rules.place AND listed.label IS NOT DISTINCT FROM rules.label;
