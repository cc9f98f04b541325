-- anon.l_diversity: how many values of a sensitive column are possible for an attacker who knows a person's class, in
-- the worst class, by each of the three definitions of Machanavajjhala et al. 2007. A row per measure:
--     distinct                    l: the fewest different values in a class
--     entropy                     l: the smallest exp(entropy) of a class's values
--     recursive                   for l = 2, 3, ... the c that must be exceeded: the largest r1 / (rl + ... + rm) of a
--                                 class, where r1 >= r2 >= ... are the counts of its values; infinity where a class has
--                                 fewer than l values
--     worst_class, worst_class_size  where that happens; of several, where the counts have the largest sum
--     sensitive                   sensitive column; a NULL in it is a value [a name]
--     nulls                       'value': a NULL in cols is a value; 'drop': rows with a NULL in cols are left out
--                                 [one of 'value', 'drop']
--     person                      column that identifies the person of a row: counts are then of different people, and
--                                 shares of the sum of these counts, since a person may have several values in a class.
--                                 A row whose person is NULL counts as nobody. NULL: every row is a person [a name, or
--                                 NULL]
-- The classes that fail: anon.l_diversity_classes.
-- test: tests/assess/l_diversity.test
CREATE OR REPLACE MACRO anon.l_diversity(tbl, cols, sensitive, nulls := 'value', person := NULL) AS TABLE
WITH _duckanon_members AS MATERIALIZED (
    FROM anon._sensitive_members('anon.l_diversity', tbl, cols, sensitive, nulls, person)
), _duckanon_cells AS NOT MATERIALIZED (
    FROM anon._sensitive_cells('_duckanon_members', person)
), _duckanon_classes AS MATERIALIZED (
    SELECT class, total, distinct_l, round(entropy_l, 12) AS rounded_l, entropy_l,
           anon._excess(largest, total) AS excess
    FROM anon._diversity('_duckanon_cells')
), _duckanon_lowest AS MATERIALIZED (
    SELECT min(distinct_l) AS l, min(entropy_l) AS lowest_entropy, max(excess) AS highest_excess
    FROM _duckanon_classes
    HAVING anon._checked_rows('anon.l_diversity', count(*), true)
), _duckanon_bad AS MATERIALIZED (                              -- level 0: distinct, 1: entropy, 2 and more: recursive
    SELECT class, total, distinct_l = l AS is_distinct, rounded_l = round(lowest_entropy, 12) AS is_entropy,
           excess = highest_excess AS is_recursive
    FROM _duckanon_classes, _duckanon_lowest
    WHERE distinct_l = l OR rounded_l = round(lowest_entropy, 12) OR excess = highest_excess
), _duckanon_most AS (                                          -- of those equally bad the one with the most is shown
    SELECT max(total) FILTER (is_distinct) AS most_distinct, max(total) FILTER (is_entropy) AS most_entropy,
           max(total) FILTER (is_recursive) AS most_recursive
    FROM _duckanon_bad
), _duckanon_further AS (                                       -- l = 3 and more, only where every class has 3 values
    SELECT class, total, level, counts[1] / (total - list_sum(counts[1:level - 1])) AS c
    FROM (SELECT class, sum(size)::BIGINT AS total, max(size, 9) AS counts,
                 unnest(range(3, 1 + least(any_value(l), 10))) AS level
          FROM _duckanon_cells, _duckanon_lowest WHERE l > 2 GROUP BY class)
    QUALIFY rank() OVER (PARTITION BY level ORDER BY c DESC NULLS LAST, total DESC NULLS LAST) = 1
), _duckanon_shown AS MATERIALIZED (
    SELECT class, total, level, c
    FROM (SELECT class, total, highest_excess AS c, unnest([0, 1, 2]) AS level,
                 unnest([is_distinct AND total = most_distinct, is_entropy AND total = most_entropy,
                         is_recursive AND total = most_recursive]) AS is_shown
          FROM _duckanon_bad, _duckanon_most, _duckanon_lowest
          WHERE total = most_distinct OR total = most_entropy OR total = most_recursive)
    WHERE is_shown
    UNION ALL
    SELECT class, total, level, c FROM _duckanon_further
), _duckanon_shown_members AS (                                 -- people are counted only where they are shown
    FROM _duckanon_members WHERE class IN (SELECT class FROM _duckanon_shown)
), _duckanon_people_sized AS (
    SELECT level, c, class, total - coalesce(repeats, 0) AS class_size
    FROM _duckanon_shown LEFT JOIN anon._class_repeats('_duckanon_shown_members') USING (class)
), _duckanon_rows_sized AS (                                    -- nobody is in a class twice
    SELECT level, c, class, total AS class_size FROM _duckanon_shown
)
SELECT CASE level WHEN 0 THEN 'distinct' WHEN 1 THEN 'entropy' ELSE 'recursive' END AS measure,
       CASE level WHEN 0 THEN any_value(l) WHEN 1 THEN any_value(lowest_entropy) ELSE level END::DOUBLE AS l,
       CASE WHEN level > 1 THEN any_value(c) END AS c,
       CASE WHEN level > 1 THEN max(named) ELSE min(named) END AS worst_class,
       CASE WHEN level > 1 THEN arg_max(class_size, named) ELSE arg_min(class_size, named) END AS worst_class_size
FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_rows_sized' ELSE '_duckanon_people_sized' END)
     LEFT JOIN anon._class_names(tbl, cols, nulls, '_duckanon_shown') USING (class), _duckanon_lowest
GROUP BY level
ORDER BY level ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.l_diversity IS
    'Distinct, entropy and recursive l-diversity of a sensitive column, each with its worst class.';
