-- anon._grouped_boxes: the distinct boxes of a boxed table, of either shape (anon._intervals), in each group:
--     tbl, own_tbl     as in anon._intervals
--     cols, by         the columns of the boxes, and those that are grouped by; NULL: all records are one group
--     _duckanon_key    what the records of a group have in common, a struct with a field more than there are columns
--     _duckanon_group  the groups counted from 1, in the order of their keys
--     _duckanon_size   how many records the box has in the group
--     added            as in anon._checked_by
CREATE OR REPLACE MACRO anon._grouped_boxes(caller, tbl, own_tbl, cols, by, added) AS TABLE
WITH _duckanon_shaped AS (
    SELECT *, NULL AS _duckanon_none
    FROM anon._intervals(caller, anon._checked_by(caller, "by", cols, added, tbl), own_tbl)
), _duckanon_distinct AS (
    SELECT COLUMNS(cols), struct_pack(*COLUMNS(anon._group_columns("by"))) AS _duckanon_key, count(*) AS _duckanon_size
    FROM _duckanon_shaped
    WHERE anon._unless((SELECT sentence FROM anon._refused_groups(caller, own_tbl, "by")))
    GROUP BY ALL
)
SELECT *, dense_rank() OVER (ORDER BY _duckanon_key ASC NULLS LAST) AS _duckanon_group FROM _duckanon_distinct;
