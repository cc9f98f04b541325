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
    SELECT place, label, 1 AS size, row_number() OVER (PARTITION BY place ORDER BY label ASC NULLS LAST) AS number
    FROM query_table(shown)
), _duckanon_names AS MATERIALIZED (
    SELECT unnest(range(1, 1 + len(cols))) AS place, unnest(cols) AS column_name
), _duckanon_values AS MATERIALIZED (
    FROM anon._read_values(people, '_duckanon_labels', cols)
), _duckanon_spans AS MATERIALIZED (
    FROM anon._column_spans('_duckanon_values')
), _duckanon_leaves AS (
    FROM anon._hierarchy_leaves(caller, hierarchies, '_duckanon_names')
), _duckanon_held AS MATERIALIZED (                    -- ncp refuses labels that are not understood, if it is asked for
    SELECT place, label, is_held, held_from, held_to
    FROM anon._label_losses(caller, '_duckanon_values', '_duckanon_spans', '_duckanon_labels', '_duckanon_leaves',
                            '_duckanon_names')
    WHERE ncp >= 0
), _duckanon_covered AS MATERIALIZED (
    SELECT DISTINCT place, label, value
    FROM anon._label_leaves('_duckanon_values', '_duckanon_spans', '_duckanon_labels', '_duckanon_leaves')
), _duckanon_nulls AS (                                -- columns of which some label names NULL
    SELECT DISTINCT place, true AS is_shown FROM _duckanon_labels JOIN _duckanon_spans USING (place)
    WHERE label IS NULL OR (NOT is_ordered AND label LIKE '{%, NULL}')
), _duckanon_listed AS MATERIALIZED (
    FROM _duckanon_covered
    UNION ALL                                          -- NULL is a value: alone, the last of a set, of the rest
    SELECT place, label, NULL FROM _duckanon_labels JOIN _duckanon_spans USING (place)
         LEFT JOIN _duckanon_nulls USING (place)
    WHERE has_null AND (label IS NULL OR (NOT is_ordered AND label LIKE '{%, NULL}')
                        OR (NOT is_ordered AND is_shown IS NULL AND regexp_matches(label, '^\{(.*, )?other\}$')))
    UNION ALL                                          -- the rest, NULL too where it is not released
    SELECT every.place, 'other', every.value
    FROM _duckanon_labels AS labels
    JOIN _duckanon_spans AS spans ON labels.place = spans.place AND labels.label = 'other' AND NOT spans.is_ordered
    JOIN _duckanon_values AS every ON every.place = labels.place
    LEFT JOIN (SELECT DISTINCT place, value, true AS is_named FROM _duckanon_covered) AS covered
           ON covered.place = every.place AND covered.value = every.value
    LEFT JOIN _duckanon_nulls AS nulls ON nulls.place = every.place
    WHERE is_named IS NULL AND (every.value IS NOT NULL OR is_shown IS NULL)
), _duckanon_rules AS MATERIALIZED (
    SELECT labels.place, labels.label, labels.number,
           CASE WHEN labels.label = '*' OR (labels.label IS NULL AND NOT spans.has_null) THEN 'everything'
                WHEN covered.is_listed IS NULL AND held.is_held THEN 'interval' ELSE 'listed' END AS rule,
           held.held_from, held.held_to
    FROM _duckanon_labels AS labels JOIN _duckanon_spans AS spans ON labels.place = spans.place
    JOIN _duckanon_held AS held ON held.place = labels.place AND held.label IS NOT DISTINCT FROM labels.label
    LEFT JOIN (SELECT DISTINCT place, label, true AS is_listed FROM _duckanon_covered) AS covered
           ON covered.place = labels.place AND covered.label = labels.label
), _duckanon_clashes AS (                              -- columns in which a value may have two labels
    SELECT place FROM _duckanon_listed WHERE label IS DISTINCT FROM '*' GROUP BY place, value HAVING count(*) > 1
    UNION
    SELECT place FROM _duckanon_rules WHERE rule = 'interval'
    QUALIFY held_from <= anon._held_before(place, held_from, held_to)
    UNION
    SELECT place FROM _duckanon_rules WHERE rule <> 'everything' AND label IS NOT NULL
    GROUP BY place HAVING count(DISTINCT rule) > 1
)
SELECT rules.place, rules.label, rules.number,
       CASE WHEN rules.rule = 'listed' AND listed.place IS NULL THEN 'nothing' ELSE rules.rule END AS rule,
       rules.held_from, rules.held_to, listed.value, clashes.place IS NULL AS is_exact
FROM _duckanon_rules AS rules
LEFT JOIN (SELECT DISTINCT place FROM _duckanon_clashes) AS clashes ON clashes.place = rules.place
LEFT JOIN _duckanon_listed AS listed
       ON rules.rule = 'listed' AND listed.place = rules.place AND listed.label IS NOT DISTINCT FROM rules.label;
