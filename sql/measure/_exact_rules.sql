-- anon._exact_rules: anon._label_rules, with `is_exact` of the column: apart from the labels for everything, no value
-- is held by two labels.
--     rules  name of a step
CREATE OR REPLACE MACRO anon._exact_rules(rules) AS TABLE
WITH _duckanon_clashes AS (                            -- columns in which a value may have two labels
    SELECT place FROM query_table(rules) WHERE rule = 'listed' GROUP BY place, value HAVING count(*) > 1
    UNION
    SELECT place FROM query_table(rules) WHERE rule = 'interval'
    QUALIFY held_from <= anon._held_before(place, held_from, held_to)
    UNION
    SELECT place FROM query_table(rules) WHERE rule <> 'everything' AND label IS NOT NULL
    GROUP BY place HAVING bool_or(rule = 'interval') AND bool_or(rule <> 'interval')
)
SELECT rules.*, clashes.place IS NULL AS is_exact
FROM query_table(rules) AS rules LEFT JOIN _duckanon_clashes AS clashes ON clashes.place = rules.place;
