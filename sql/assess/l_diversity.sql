-- anon.l_diversity: how many values of a sensitive column an attacker is left with who knows a person's class, in the
-- worst class, by each of the three definitions of Machanavajjhala et al. 2007. A row per measure:
--     distinct   l: the fewest different values in a class
--     entropy    l: the smallest exp(entropy) of a class's values
--     recursive  for l = 2, 3, ... the c that must be exceeded: the largest r1 / (rl + ... + rm) of a class, where
--                r1 >= r2 >= ... are the counts of its values; infinity where a class has fewer than l values
--     worst_class, worst_class_size   where that happens
--     nulls      of cols, 'value': NULL is a value; 'drop': rows with a NULL are left out. In `sensitive` NULL is a
--                value in any case
--     person     name of the column that says whose row it is: counts are then of different people, and shares of the
--                sum of these counts, since a person may have several values in a class. A row whose person is NULL
--                counts as nobody. NULL: every row is a person
-- The classes that fail: anon.l_diversity_classes.
-- test: tests/assess/l_diversity.test
CREATE OR REPLACE MACRO anon.l_diversity(tbl, cols, sensitive, nulls := 'value', person := NULL) AS TABLE
WITH _classes AS MATERIALIZED (
    FROM anon._diversity('anon.l_diversity', tbl, cols, sensitive, nulls, person := person)
), _fewest AS (
    SELECT min(distinct_l) AS l FROM _classes
), _recursive AS (
    SELECT levels.l, coalesce(counts[1], 1) / coalesce(list_sum(counts[levels.l:]), 0) AS c, class, class_size
    FROM _classes, (SELECT unnest(range(2, 1 + greatest(2, least(l, 10)))) AS l FROM _fewest) AS levels
)
SELECT 'distinct' AS measure, min(distinct_l)::DOUBLE AS l, NULL::DOUBLE AS c,
       arg_min(class, (distinct_l, -class_size, class)) AS worst_class,
       arg_min(class_size, (distinct_l, -class_size, class)) AS worst_class_size
FROM _classes
HAVING anon._checked_rows('anon.l_diversity', count(*), true)
UNION ALL
SELECT 'entropy', min(entropy_l), NULL, arg_min(class, (round(entropy_l, 12), -class_size, class)),
       arg_min(class_size, (round(entropy_l, 12), -class_size, class))
FROM _classes
UNION ALL
FROM (SELECT 'recursive', l, max(c), arg_max(class, (c, class_size, class)), arg_max(class_size, (c, class_size, class))
      FROM _recursive GROUP BY l ORDER BY l ASC NULLS LAST);
COMMENT ON MACRO TABLE anon.l_diversity IS
    'Distinct, entropy and recursive l-diversity of a sensitive column, each with the class that is worst.';
