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
), _duckanon_cells AS MATERIALIZED (
    FROM anon._sensitive_cells('_duckanon_members', person)
), _duckanon_classes AS MATERIALIZED (
    FROM anon._diversity('_duckanon_cells')
), _duckanon_lowest AS MATERIALIZED (
    SELECT min(distinct_l) AS l, min(entropy_l) AS entropy_l
    FROM _duckanon_classes
    HAVING anon._checked_rows('anon.l_diversity', count(*), true)
), _duckanon_counts AS (                                        -- the most frequent values, only where they are needed
    SELECT class, max(size, 9) AS counts FROM _duckanon_cells
    WHERE (SELECT l FROM _duckanon_lowest) > 2
    GROUP BY class
), _duckanon_scores AS MATERIALIZED (                           -- the smaller, the worse; level 0: distinct, 1: entropy
    SELECT class, total, unnest([0, 1, 2]) AS level,
           unnest([distinct_l, round(entropy_l, 12), -anon._excess(largest, total)]) AS score
    FROM _duckanon_classes
    UNION ALL
    SELECT class, total, level, -largest / (total - list_sum(counts[1:level - 1]))
    FROM _duckanon_classes JOIN _duckanon_counts USING (class),
         (SELECT unnest(range(3, 1 + least(l, 10))) AS level FROM _duckanon_lowest)
), _duckanon_worst AS MATERIALIZED (
    SELECT level, min(score) AS score FROM _duckanon_scores GROUP BY level
), _duckanon_shown AS MATERIALIZED (                            -- of those equally bad the one with the most is shown
    SELECT level, class, total FROM _duckanon_scores JOIN _duckanon_worst USING (level, score)
    QUALIFY total = max(total) OVER (PARTITION BY level)
), _duckanon_shown_members AS (                                 -- people are counted only where they are shown
    FROM _duckanon_members WHERE class IN (SELECT class FROM _duckanon_shown)
), _duckanon_people_sized AS (
    SELECT level, class, total - coalesce(repeats, 0) AS class_size
    FROM _duckanon_shown LEFT JOIN anon._class_repeats('_duckanon_shown_members') USING (class)
), _duckanon_rows_sized AS (                                    -- nobody is in a class twice
    SELECT level, class, total AS class_size FROM _duckanon_shown
), _duckanon_sized AS (
    SELECT level, named, class_size
    FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_rows_sized' ELSE '_duckanon_people_sized' END)
         LEFT JOIN anon._class_names(tbl, cols, nulls, '_duckanon_shown') USING (class)
)
SELECT CASE level WHEN 0 THEN 'distinct' WHEN 1 THEN 'entropy' ELSE 'recursive' END AS measure,
       CASE level WHEN 0 THEN any_value(l) WHEN 1 THEN any_value(entropy_l) ELSE level END::DOUBLE AS l,
       CASE WHEN level > 1 THEN -any_value(score) END AS c,
       CASE WHEN level > 1 THEN max(named) ELSE min(named) END AS worst_class,
       CASE WHEN level > 1 THEN arg_max(class_size, named) ELSE arg_min(class_size, named) END AS worst_class_size
FROM _duckanon_worst JOIN _duckanon_sized USING (level), _duckanon_lowest
GROUP BY level
ORDER BY level ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.l_diversity IS
    'Distinct, entropy and recursive l-diversity of a sensitive column, each with its worst class.';
