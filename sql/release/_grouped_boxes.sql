-- anon._grouped_boxes: the distinct boxes of a boxed table, of either shape (anon._intervals), in each group:
--     named            the columns of the boxes, as _anon_choose takes them: names by parameter
--     by               the columns that are grouped by; NULL: all records are one group
--     _duckanon_key    what the records of a group have in common, a struct with a field more than there are columns
--     _duckanon_group  the groups counted from 1, in the order of their keys
--     _duckanon_size   how many records the box has in the group
-- needs: python
CREATE OR REPLACE MACRO anon._grouped_boxes(caller, boxed, named, by) AS TABLE
WITH _duckanon_shaped AS (
    SELECT *, NULL AS _duckanon_none FROM anon._intervals(caller, boxed, boxed)
), _duckanon_distinct AS (
    SELECT COLUMNS(_anon_choose(*, caller, boxed, named)),
           struct_pack(*COLUMNS(_anon_choose(*, caller, boxed, {'by': anon._group_columns("by")}))) AS _duckanon_key,
           count(*) AS _duckanon_size
    FROM _duckanon_shaped
    WHERE anon._unless((SELECT sentence FROM anon._refused_groups(caller, boxed, "by")))
    GROUP BY ALL
)
SELECT *, dense_rank() OVER (ORDER BY _duckanon_key ASC NULLS LAST) AS _duckanon_group FROM _duckanon_distinct;
