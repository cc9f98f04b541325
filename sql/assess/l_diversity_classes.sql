-- anon.l_diversity_classes: the diversity of every class, the worst first; with `l`, only the classes that have fewer
-- than l different values of the sensitive column.
--     entropy_l               exp of the entropy of the class's values
--     recursive_c             r1 / (r2 + ... + rm), the c that recursive (c, 2)-diversity must exceed
--     most_frequent_fraction  share of the most frequent value: how sure an attacker can be
--     nulls                   for cols, 'value': NULL is a value; 'drop': rows with a NULL are left out
--     person                  as for anon.l_diversity: class_size and all counts are then of different people
-- test: tests/assess/l_diversity_classes.test
CREATE OR REPLACE MACRO anon.l_diversity_classes(
    tbl, cols, sensitive, l := NULL, nulls := 'value', person := NULL
) AS TABLE
SELECT unnest(class), class_size, distinct_l, entropy_l,
       coalesce(counts[1], 1) / coalesce(list_sum(counts[2:len(counts)]), 0) AS recursive_c,
       coalesce(counts[1] / total, 1) AS most_frequent_fraction
FROM anon._diversity('anon.l_diversity_classes',
                     anon._checked_whole('anon.l_diversity_classes', 'l', coalesce(l, 1), 1,
                         anon._checked_apart('anon.l_diversity_classes', cols,
                                             ['class_size', 'distinct_l', 'entropy_l', 'recursive_c',
                                              'most_frequent_fraction'], tbl)),
                     cols, sensitive, nulls, person := person)
WHERE l IS NULL OR distinct_l < l
ORDER BY distinct_l ASC NULLS LAST, round(entropy_l, 12) ASC NULLS LAST, class_size DESC NULLS LAST,
         class ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.l_diversity_classes IS
    'The diversity of every class, or only of those with fewer than l sensitive values, the worst first.';
