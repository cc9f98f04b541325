-- anon._refused_groups: the sentence that refuses to group by intervals, NULL where `by` names others: the group
-- [30, 40] would not hold all people between 30 and 40.
CREATE OR REPLACE MACRO anon._refused_groups(caller, boxed, by) AS TABLE
WITH _duckanon_listed AS (
    SELECT list_concat(list(column_name) FILTER (anon._is_interval_type(column_type)),
                       anon._pairs(list(column_name))) AS intervals
    FROM anon._columns(boxed)
)
SELECT caller || ': by must name exact columns; "' || any_value(name) || '" holds intervals.' AS sentence
FROM (SELECT unnest(TRY_CAST("by" AS VARCHAR[])) AS name), _duckanon_listed
WHERE anon._is_among(name, intervals)
HAVING count(*) > 0;
