-- anon._bucket_costs: how far the values of a column of numbers or dates are from what their buckets say.
--     rank_difference  sum of |rank of the bucket's median - rank of the value| (Probabilistic Anonymity, Definition
--                      8); equal values have consecutive ranks, so that a bucket of m neighbours costs floor(m^2 / 4)
--     error_ratio      sum of (x' - x)^2 over the same sum with x' the mean of all values (Probabilistic Anonymity,
--                      Section 5.2); x' is the released number where there is one, else the mean of the bucket's values
-- A value's bucket is the label that holds it; one that no label holds counts as '*', all values in one bucket. Where
-- every label is a single number, and no row is missing, values and labels are matched by their ranks: what a release
-- of medians or means keeps. Both are NULL where labels overlap, since a value has no one bucket then.
--     value_counts, spans, losses  names of steps; losses: anon._label_losses
CREATE OR REPLACE MACRO anon._bucket_costs(value_counts, spans, losses) AS TABLE
WITH _duckanon_held AS (
    SELECT place, held_from, held_to, size, held_from <= anon._held_before(place, held_from, held_to) AS is_crossed,
           sum(size) OVER (PARTITION BY place ORDER BY held_from ASC NULLS LAST, held_to ASC NULLS LAST
                           ROWS UNBOUNDED PRECEDING)::BIGINT - size + 1
               AS first_rank
    FROM query_table(losses) WHERE is_held
), _duckanon_shapes AS MATERIALIZED (
    SELECT place, coalesce(bool_or(is_crossed), false) AS has_overlap, any_value(placed) AS placed,
           coalesce(bool_and(held_from = held_to) AND sum(size) = any_value(placed), false) AS is_ranked
    FROM query_table(spans) LEFT JOIN _duckanon_held USING (place)
    WHERE is_ordered AND placed > 0 GROUP BY place
), _duckanon_runs AS MATERIALIZED (                    -- equal values, and their ranks
    SELECT place, number, size,
           sum(size) OVER (PARTITION BY place ORDER BY number ASC NULLS LAST ROWS UNBOUNDED PRECEDING)::BIGINT
               - size + 1 AS first_rank
    FROM query_table(value_counts) JOIN _duckanon_shapes USING (place) WHERE number IS NOT NULL AND NOT has_overlap
), _duckanon_starts AS (                               -- matched by ranks: cut where a side goes on to its next value
    SELECT place, first_rank FROM _duckanon_runs JOIN _duckanon_shapes USING (place) WHERE is_ranked
    UNION
    SELECT place, first_rank FROM _duckanon_held JOIN _duckanon_shapes USING (place) WHERE is_ranked
), _duckanon_ranked AS (
    SELECT starts.place, runs.number, starts.first_rank,
           lead(starts.first_rank, 1, placed + 1) OVER (
               PARTITION BY starts.place ORDER BY starts.first_rank ASC NULLS LAST)
               - starts.first_rank AS size,
           held.held_from AS bucket, held.held_from AS spoken
    FROM _duckanon_starts AS starts
    ASOF JOIN _duckanon_runs AS runs ON starts.place = runs.place AND starts.first_rank >= runs.first_rank
    ASOF JOIN _duckanon_held AS held ON starts.place = held.place AND starts.first_rank >= held.first_rank
    JOIN _duckanon_shapes AS shapes ON starts.place = shapes.place
), _duckanon_pieces AS MATERIALIZED (
    FROM _duckanon_ranked
    UNION ALL
    SELECT runs.place, runs.number, runs.first_rank, runs.size,
           CASE WHEN runs.number <= held.held_to THEN held.held_from END, NULL
    FROM (FROM _duckanon_runs SEMI JOIN (FROM _duckanon_shapes WHERE NOT is_ranked) USING (place)) AS runs
    ASOF LEFT JOIN _duckanon_held AS held ON runs.place = held.place AND runs.number >= held.held_from
), _duckanon_wholes AS MATERIALIZED (
    SELECT place, (sum(size) + 1)::BIGINT // 2 AS median_rank, sum(size * number) / sum(size) AS mean
    FROM _duckanon_pieces GROUP BY place
), _duckanon_buckets AS (
    SELECT place, bucket, sum(size)::BIGINT AS members, sum(size * number) / sum(size) AS bucket_mean
    FROM _duckanon_pieces WHERE bucket IS NOT NULL GROUP BY place, bucket
), _duckanon_ranks AS (                                -- a bucket's values are neighbours: it holds a range of ranks
    SELECT place, sum(members * members // 4) AS rank_difference FROM _duckanon_buckets GROUP BY place
    UNION ALL
    SELECT place, sum(anon._rank_sum(first_rank + size - 1 - median_rank)
                      - anon._rank_sum(first_rank - 1 - median_rank))
    FROM _duckanon_pieces JOIN _duckanon_wholes USING (place) WHERE bucket IS NULL GROUP BY place
), _duckanon_errors AS (
    SELECT place, sum(size * power(number - coalesce(spoken, bucket_mean, mean), 2)) AS error,
           sum(size * power(number - mean, 2)) AS largest_error
    FROM _duckanon_pieces JOIN _duckanon_wholes USING (place) LEFT JOIN _duckanon_buckets USING (place, bucket)
    GROUP BY place
)
SELECT place, sum(rank_difference)::BIGINT AS rank_difference,
       any_value(coalesce(error / nullif(largest_error, 0), 0)) AS error_ratio
FROM _duckanon_ranks JOIN _duckanon_errors USING (place) GROUP BY place;
