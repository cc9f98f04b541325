-- anon.l_diversity_classes: the diversity of every class, the worst first; with `l`, only of the classes that have
-- fewer than l different values of the sensitive column.
--     entropy_l                 exp of the entropy of the class's values
--     recursive_c               r1 / (r2 + ... + rm), the c that recursive (c, 2)-diversity must exceed
--     most_frequent_fraction    share of the most frequent value: how sure an attacker can be
--     sensitive, nulls, person  as in anon.l_diversity
--     l                         only classes with fewer different values than this; NULL: all classes [a number, at
--                               least 1, or NULL]
-- promises: Between(0, 1, 'most_frequent_fraction'),
--           CountsPeople('class_size', 'distinct_l', 'entropy_l'), InvariantUnder(*TABLE, 'types')
-- test: tests/assess/l_diversity_classes.test
CREATE OR REPLACE MACRO anon.l_diversity_classes(
    tbl, cols, sensitive, l := NULL, nulls := 'value', person := NULL
) AS TABLE
WITH _duckanon_members AS MATERIALIZED (
    FROM anon._sensitive_members(
             'anon.l_diversity_classes',
             anon._checked_whole('anon.l_diversity_classes', 'l', coalesce(l, 1), 1,
                 anon._checked_apart('anon.l_diversity_classes', cols,
                                     ['class_size', 'distinct_l', 'entropy_l', 'recursive_c',
                                      'most_frequent_fraction'], tbl)),
             cols, sensitive, nulls, person)
), _duckanon_cells AS (
    FROM anon._sensitive_cells('_duckanon_members', person)
), _duckanon_classes AS MATERIALIZED (
    FROM anon._diversity('_duckanon_cells') WHERE l IS NULL OR distinct_l < l
)
SELECT unnest(named), total - coalesce(repeats, 0) AS class_size, distinct_l, entropy_l,
       anon._excess(largest, total) AS recursive_c,
       CASE WHEN total = 0 THEN 1 ELSE largest / total END AS most_frequent_fraction
FROM _duckanon_classes LEFT JOIN anon._class_names(tbl, cols, nulls, '_duckanon_classes') USING (class)
     LEFT JOIN anon._class_repeats('_duckanon_members') USING (class)
ORDER BY distinct_l ASC NULLS LAST, round(entropy_l, 12) ASC NULLS LAST, class_size DESC NULLS LAST,
         named ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.l_diversity_classes IS
    'The diversity of every class, or only of those with fewer than l sensitive values, the worst first.';
