-- anon.t_closeness_classes: the distance of every class, the farthest first; with `t`, only of the classes farther than
-- t.
--     sensitive, distance, nulls, person  as in anon.t_closeness
--     t                           only classes farther than this; NULL: all classes [a number from 0 to 1, or NULL]
-- promises: Between(0, 1, 't'), InvariantUnder(*TABLE, 'types')
-- test: tests/assess/t_closeness_classes.test
CREATE OR REPLACE MACRO anon.t_closeness_classes(
    tbl, cols, sensitive, t := NULL, distance := 'auto', nulls := 'value', person := NULL
) AS TABLE
WITH _duckanon_members AS MATERIALIZED (
    FROM anon._sensitive_members(
             'anon.t_closeness_classes',
             anon._checked_fraction('anon.t_closeness_classes', 't', coalesce(t, 0),
                 anon._checked_choice('anon.t_closeness_classes', 'distance', distance, ['auto', 'ordered', 'equal'],
                     anon._checked_apart('anon.t_closeness_classes', cols, ['class_size', 't'], tbl))),
             cols, sensitive, nulls, person)
), _duckanon_far AS MATERIALIZED (
    FROM anon._closeness('_duckanon_members', distance, person)
    WHERE t IS NULL OR farness > t
), _duckanon_far_members AS (                                   -- people are counted only where they are shown
    FROM _duckanon_members WHERE class IN (SELECT class FROM _duckanon_far)
)
SELECT unnest(named), class_total - coalesce(repeats, 0) AS class_size, farness AS t
FROM _duckanon_far LEFT JOIN anon._class_names(tbl, cols, nulls, '_duckanon_far') USING (class)
     LEFT JOIN anon._class_repeats('_duckanon_far_members') USING (class)
ORDER BY round(farness, 12) DESC NULLS LAST, class_size DESC NULLS LAST, named ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.t_closeness_classes IS
    'The t-closeness distance of every class, or only of those farther than t, the farthest first.';
