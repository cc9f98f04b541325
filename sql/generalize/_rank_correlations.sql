-- anon._rank_correlations: how much the order of a kept column tells about that of a coarse one within classes, as a
-- copy does, one row per pair. Classes are small and their values mostly different, so that no two rows share a kept
-- value and counting values tells nothing.
--     rank_correlation  of the ranks within classes, the mean over the classes, each weighted by its rows less one; its
--                 sign does not count, over all classes or, where that is more, over those of each label of the coarse
--                 column (less what chance gives by itself). Text is sorted in several orders (anon._sort_keys); the
--                 largest is taken
--     is_beyond_chance  at least 0.85, and three standard deviations: over all shuffles a class of m rows has the
--                 variance 1 / (m - 1), whatever its values are
--     is_unjudged       whether there are too few rows to tell (even a copy would be less than three standard
--                 deviations) and most rows share their values of both columns with no other of their class
-- (duckanon._core.privacy.narrowing is the same in Python)
--     cells  the name of a step: anon._coded_cells with the class of each row
CREATE OR REPLACE MACRO anon._rank_correlations(cells) AS TABLE
WITH _duckanon_own AS MATERIALIZED (
    SELECT number, class, column_place, label,
           dense_rank() OVER (PARTITION BY column_place, class ORDER BY position ASC NULLS LAST, text ASC NULLS LAST)
               AS own
    FROM (SELECT number, class, unnest(range(1, 1 + len(labels))) AS column_place, unnest(labels) AS label,
                 unnest(numbers) AS position, unnest(texts) AS text
          FROM query_table(cells))
), _duckanon_freedom AS (
    SELECT column_place, sum(size - 1) FILTER (different > 1) AS freedom,
           2 * sum(alone) FILTER (size > 1) > sum(size) AS is_different
    FROM (SELECT column_place, class, sum(size) AS size, count(*) AS different, count(*) FILTER (size = 1) AS alone
          FROM (SELECT column_place, class, own, count(*) AS size FROM _duckanon_own GROUP BY column_place, class, own)
          GROUP BY column_place, class)
    GROUP BY column_place
), _duckanon_alone AS (
    SELECT kept_place, 2 * sum(alone) FILTER (size > 1) > sum(size) AS is_different
    FROM (SELECT kept_place, class, sum(size) AS size, count(*) FILTER (size = 1) AS alone
          FROM (SELECT kept_place, class, kept, count(*) AS size
                FROM (SELECT class, unnest(range(1, 1 + len(kept))) AS kept_place, unnest(kept) AS kept
                      FROM query_table(cells))
                GROUP BY kept_place, class, kept)
          GROUP BY kept_place, class)
    GROUP BY kept_place
), _duckanon_readings AS (
    SELECT number, class, kept_place, unnest(range(1, 1 + len(keys))) AS reading, unnest(keys) AS sorted
    FROM (SELECT number, class, unnest(range(1, 1 + len(kept_keys))) AS kept_place, unnest(kept_keys) AS keys
          FROM query_table(cells))
), _duckanon_other AS (
    SELECT number, class, kept_place, reading,
           dense_rank() OVER (PARTITION BY kept_place, reading, class
                              ORDER BY sorted['key'] ASC NULLS LAST, sorted['text'] ASC NULLS LAST) AS other
    FROM _duckanon_readings WHERE sorted['key'] IS NOT NULL OR sorted['text'] IS NOT NULL
), _duckanon_classes AS (
    SELECT column_place, kept_place, reading, any_value(label) AS label, count(*) - 1 AS freedom,
           CASE WHEN max(other) > min(other) THEN corr(own, other) ELSE 0 END AS correlation
    FROM _duckanon_own JOIN _duckanon_other USING (number, class)
    GROUP BY column_place, kept_place, reading, class HAVING max(own) > min(own)
), _duckanon_labels AS (
    SELECT column_place, kept_place, reading, sum(freedom) AS freedom, sum(freedom * correlation) AS moved
    FROM _duckanon_classes GROUP BY column_place, kept_place, reading, label
), _duckanon_summed AS (
    SELECT column_place, kept_place,
           unnest([sum(freedom), sum(freedom) FILTER (freedom >= 4)]) AS freedom,
           unnest([abs(sum(moved)), sum(abs(moved)) FILTER (freedom >= 4)]) AS moved,
           unnest([0, sum(sqrt(2 * freedom / pi())) FILTER (freedom >= 4)]) AS by_chance
    FROM _duckanon_labels GROUP BY column_place, kept_place, reading
), _duckanon_judged AS (
    SELECT column_place, kept_place, freedom, round((moved - by_chance) / (freedom - by_chance), 9) AS correlation
    FROM _duckanon_summed WHERE freedom >= 9 AND by_chance < freedom
), _duckanon_best AS (
    SELECT column_place, kept_place, greatest(max(correlation), 0) AS rank_correlation,
           bool_or(correlation >= greatest(0.85, 3 / sqrt(freedom))) AS is_beyond_chance
    FROM _duckanon_judged GROUP BY column_place, kept_place
)
SELECT column_place, kept_place, rank_correlation, coalesce(is_beyond_chance, false) AS is_beyond_chance,
       freedom < 9 AND _of_column.is_different AND _of_kept.is_different AS is_unjudged
FROM _duckanon_freedom AS _of_column CROSS JOIN _duckanon_alone AS _of_kept
     LEFT JOIN _duckanon_best USING (column_place, kept_place);
