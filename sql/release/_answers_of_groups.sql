-- anon._answers_of_groups: answers with the columns of their groups before them.
--     boxes    a step of anon._grouped_boxes
--     answers  a step with the number of the group as _duckanon_group
CREATE OR REPLACE MACRO anon._answers_of_groups(boxes, answers) AS TABLE
WITH _duckanon_keys AS (
    SELECT list(_duckanon_key ORDER BY _duckanon_group ASC NULLS LAST) AS _duckanon_in_order
    FROM (SELECT _duckanon_group, any_value(_duckanon_key) AS _duckanon_key FROM query_table(boxes) GROUP BY ALL)
), _duckanon_named AS (
    SELECT unnest(_duckanon_in_order[_duckanon_group]), _duckanon_answered.*
    FROM query_table(answers) AS _duckanon_answered, _duckanon_keys
)
SELECT COLUMNS(lambda name: NOT starts_with(name, '_duckanon_')) FROM _duckanon_named;
