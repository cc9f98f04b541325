-- anon._pair_uniques: the classes that one or two columns make unique, as anon.special_uniques finds them.
--     records  name of a step with rows of anon._risk_records
CREATE OR REPLACE MACRO anon._pair_uniques(records, person, nulls) AS TABLE
WITH _pair_cells AS MATERIALIZED (
    SELECT class, any_value(missing) AS missing, any_value(places) AS places, sum(row_count)::BIGINT AS row_count,
           min(member) AS first_member, max(member) AS last_member
    FROM query_table(records) GROUP BY class
), _pair_sets AS (
    SELECT first_place, unnest(range(first_place, 1 + width)) AS last_place
    FROM (SELECT unnest(range(1, 1 + width)) AS first_place, width
          FROM (SELECT max(len(places)) AS width FROM _pair_cells))
), _pair_keys AS (
    SELECT first_place, last_place, places[first_place] AS first_code, places[last_place] AS last_code, class,
           row_count, first_member, last_member
    FROM _pair_cells, _pair_sets
    WHERE nulls = 'value' OR NOT list_has_any(missing, [first_place, last_place])
), _pair_groups AS (
    SELECT coalesce(list(class) FILTER (person IS NOT NULL), [max(class)]) AS classes
    FROM _pair_keys
    GROUP BY first_place, last_place, first_code, last_code
    HAVING CASE WHEN person IS NULL THEN sum(row_count) = 1
                ELSE min(first_member) IS NOT DISTINCT FROM max(last_member) END
)
SELECT DISTINCT unnest(classes) AS class FROM _pair_groups;
