-- anon._interaction_places: which columns interact, by their places among the columns that were named, in the table's
-- order.
--     joint        the places of all that do
--     sets_within  the sets that were named, by places within `joint`
CREATE OR REPLACE MACRO anon._interaction_places(tbl, cols, interactions) AS TABLE
SELECT coalesce(list_sort(list_distinct(flatten(sets)), 'ASC', 'NULLS LAST'), []) AS joint,
       list_transform(sets, lambda places: list_transform(places, lambda place: list_position(joint, place)))
           AS sets_within
FROM (SELECT list_transform(TRY_CAST(interactions AS VARCHAR[][]), lambda columns:
                 list_transform(columns, lambda named: list_position(names, lower(named)))) AS sets
      FROM (SELECT list(lower(column_name) ORDER BY place ASC NULLS LAST) AS names
            FROM anon._columns(tbl) WHERE anon._is_among(column_name, cols)));
