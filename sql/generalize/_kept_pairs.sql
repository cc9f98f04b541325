-- anon._kept_pairs: whether columns that are kept tell more about columns that are made coarser than their labels do.
-- One row per pair, from as many rows as make two million cells (at least 5,000, and ten times the square root of all,
-- so that enough of them are in the same class), picked by the hash of their numbers:
--     values_within, values_shuffled  how many original values of `column_name` occur together with the row's value of
--                 `kept_column` inside the row's label, on average over the rows; and how many do when the kept column
--                 is shuffled within the classes, so that it tells nothing but what the class tells: the mean of six
--                 times
--     rank_distance_ratio  for numbers and dates: how far apart two people with the same label and kept value are, in
--                 ranks of the column, over the same when shuffled. NULL where there are no two
--     rank_correlation  as in anon._rank_correlations, from 5,000 rows, or ten times the square root of all
--     narrows     whether the values are fewer than nine tenths of those when shuffled; or, since counting tells
--                 nothing where nearly every value is another one, as dates of birth in a small table, whether the
--                 distances are less than seven tenths (in a column of at least 30 values: ranks of a few codes tell
--                 little), either by more than three standard deviations between the six; or whether the rank
--                 correlation is at least .85, beyond chance. NULL where too few rows tell
--     tbl, plan  as for anon._coded_cells
CREATE OR REPLACE MACRO anon._kept_pairs(caller, tbl, cols, plan) AS TABLE
WITH _duckanon_coarse_names AS (
    SELECT row_number() OVER (ORDER BY place ASC NULLS LAST) AS column_place, column_name
    FROM anon._columns(tbl) WHERE anon._is_among(column_name, cols)
), _duckanon_kept_names AS (
    SELECT row_number() OVER (ORDER BY place ASC NULLS LAST) AS kept_place, column_name AS kept_column
    FROM anon._columns(tbl)
    WHERE column_name NOT IN ('_duckanon_none', '_duckanon_person') AND NOT anon._is_among(column_name, cols)
), _duckanon_least AS (
    SELECT count(*) AS "rows", greatest(5_000, 10 * sqrt(count(*))) AS least FROM query_table(tbl)
), _duckanon_fraction AS (                             -- of the rows; each pair is looked at seven times
    SELECT greatest(least, 2_000_000 / (7 * greatest(1, len(cols) * (SELECT count(*) FROM _duckanon_kept_names))))
           / greatest(1, "rows") AS fraction, least / greatest(1, "rows") AS least_fraction
    FROM _duckanon_least
), _duckanon_rows AS (
    FROM query_table(tbl)
    QUALIFY hash(row_number() OVER ())
            <= 18446744073709551615 * least(1.0, (SELECT fraction FROM _duckanon_fraction))
), _duckanon_sample AS MATERIALIZED (
    SELECT *, hash(labels) AS class,
           row_number() OVER (PARTITION BY hash(labels) ORDER BY number ASC NULLS LAST) AS place
    FROM anon._coded_cells(caller, '"_duckanon_rows"', cols, plan)
), _duckanon_fewer AS MATERIALIZED (
    SELECT number, class, labels, numbers, texts, kept, kept_keys FROM _duckanon_sample
    WHERE hash(number, 7)
            <= 18446744073709551615 * least(1.0, (SELECT least_fraction / least(1.0, fraction) FROM _duckanon_fraction))
), _duckanon_coarse AS MATERIALIZED (                  -- one row a coarse cell, with its rank in the column
    SELECT number, class, place, column_place, label, original,
           CASE WHEN position IS NOT NULL
                THEN dense_rank() OVER (PARTITION BY column_place ORDER BY position ASC NULLS LAST) END AS rank
    FROM (SELECT number, class, place, unnest(range(1, 1 + len(labels))) AS column_place, unnest(labels) AS label,
                 unnest(originals) AS original, unnest(numbers) AS position
          FROM _duckanon_sample)
), _duckanon_places AS (                               -- turn 0 is the table as it is, the others are shuffled
    SELECT turn, class, kept,
           CASE WHEN turn = 0 THEN place
                ELSE row_number() OVER (PARTITION BY turn, class ORDER BY hash(number, turn) ASC NULLS LAST) END
               AS place
    FROM _duckanon_sample, range(7) AS turns(turn)
), _duckanon_kept AS (                                 -- one row a kept cell
    SELECT turn, class, place, unnest(range(1, 1 + len(kept))) AS kept_place, unnest(kept) AS kept FROM _duckanon_places
), _duckanon_met AS MATERIALIZED (
    SELECT turn, column_place, kept_place, label, kept, original, rank, number
    FROM _duckanon_coarse JOIN _duckanon_kept USING (class, place)
), _duckanon_counted AS (
    SELECT turn, column_place, kept_place, sum(size) AS size, count(*) AS originals
    FROM (SELECT turn, column_place, kept_place, label, kept, original, count(*) AS size
          FROM _duckanon_met GROUP BY ALL)
    GROUP BY turn, column_place, kept_place, label, kept
), _duckanon_values AS (
    SELECT turn, column_place, kept_place, sum(size * originals) / sum(size) AS seen
    FROM _duckanon_counted GROUP BY turn, column_place, kept_place
), _duckanon_steps AS (                                -- from one row to the next of the same label and kept value
    SELECT turn, column_place, kept_place, rank,
           abs(rank - lag(rank) OVER (PARTITION BY turn, column_place, kept_place, label, kept
                                      ORDER BY number ASC NULLS LAST)) AS step
    FROM _duckanon_met WHERE rank IS NOT NULL
), _duckanon_distances AS (
    SELECT turn, column_place, kept_place, avg(step) AS distance, max(rank) AS ranks FROM _duckanon_steps
    GROUP BY turn, column_place, kept_place
), _duckanon_turns AS (
    SELECT column_place, kept_place, any_value(seen) FILTER (turn = 0) AS values_within,
           avg(seen) FILTER (turn > 0) AS values_shuffled, stddev(seen) FILTER (turn > 0) AS values_noise,
           any_value(distance) FILTER (turn = 0) AS within, avg(distance) FILTER (turn > 0) AS shuffled,
           stddev(distance) FILTER (turn > 0) AS noise, max(ranks) AS ranks
    FROM _duckanon_values LEFT JOIN _duckanon_distances USING (turn, column_place, kept_place)
    GROUP BY column_place, kept_place
)
SELECT column_place, column_name, kept_place, kept_column, values_within, values_shuffled,
       within / nullif(shuffled, 0) AS rank_distance_ratio, rank_correlation,
       CASE WHEN values_within < 0.9 * values_shuffled AND values_within < values_shuffled - 3 * values_noise
                 OR coalesce(ranks >= 30 AND within < 0.7 * shuffled AND within < shuffled - 3 * noise, false)
                 OR coalesce(is_beyond_chance, false) THEN true
            WHEN coalesce(is_unjudged, false) THEN NULL
            ELSE false END AS narrows
FROM _duckanon_turns JOIN _duckanon_coarse_names USING (column_place) JOIN _duckanon_kept_names USING (kept_place)
     LEFT JOIN anon._rank_correlations('"_duckanon_fewer"') USING (column_place, kept_place);
