-- anon._kept_pairs: whether columns that are kept tell more about columns that are made coarser than their labels do.
-- One row per pair, from as many rows as make two million cells (at least 5,000, and ten times the square root of all,
-- so that enough of them are in the same class), picked by the hash of their values:
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
WITH RECURSIVE _duckanon_coarse_names AS (
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
    FROM query_table(tbl) AS _duckanon_row
    QUALIFY hash(hash(_duckanon_row), row_number() OVER (PARTITION BY hash(_duckanon_row)))
            <= 18446744073709551615 * least(1.0, (SELECT fraction FROM _duckanon_fraction))
), _duckanon_coded AS (
    SELECT *, row_number() OVER (PARTITION BY row_hash) AS repeat
    FROM anon._coded_cells(caller, '"_duckanon_rows"', cols, plan)
), _duckanon_sample AS MATERIALIZED (                  -- numbered at random, and the same whatever the table's order
    SELECT *, hash(labels) AS class, row_number() OVER (ORDER BY hash(row_hash, repeat) ASC NULLS LAST) AS number
    FROM _duckanon_coded
), _duckanon_fewer AS MATERIALIZED (
    SELECT number, class, labels, numbers, texts, kept, kept_keys FROM _duckanon_sample
    WHERE hash(number, 7)
            <= 18446744073709551615 * least(1.0, (SELECT least_fraction / least(1.0, fraction) FROM _duckanon_fraction))
), _duckanon_cells AS MATERIALIZED (                   -- one row a coarse cell
    SELECT number, row_number() OVER (ORDER BY class ASC NULLS LAST, number ASC NULLS LAST) AS place,
           unnest(range(1, 1 + len(labels))) AS column_place, unnest(labels) AS label, unnest(originals) AS original,
           unnest(numbers) AS position
    FROM _duckanon_sample
), _duckanon_coarse AS MATERIALIZED (                  -- with its rank, where labels have several values
    SELECT CAST(number AS INTEGER) AS number, CAST(place AS INTEGER) AS place,
           CAST(column_place AS INTEGER) AS column_place, label, original,
           CAST(CASE WHEN position IS NOT NULL
                     THEN dense_rank() OVER (PARTITION BY column_place ORDER BY position ASC NULLS LAST) END AS INTEGER)
               AS rank
    FROM _duckanon_cells
    WHERE column_place IN (SELECT column_place FROM _duckanon_cells
                           GROUP BY column_place HAVING count(DISTINCT original) > count(DISTINCT label))
), _duckanon_kept AS MATERIALIZED (                    -- no more than every turn sorts
    SELECT class, number, kept FROM _duckanon_sample
), _duckanon_turns AS (         -- turn 0 is the table as it is, others are shuffled: one at a time, for the memory
    SELECT CAST(-1 AS BIGINT) AS turn, 0 AS column_place, 0 AS kept_place, CAST(0 AS DOUBLE) AS seen,
           CAST(0 AS DOUBLE) AS distance, 0 AS ranks
    UNION ALL
    SELECT turn, column_place, kept_place, CAST(sum(size * originals) AS DOUBLE) / sum(size),
           CAST(sum(distance) AS DOUBLE) / nullif(sum(steps), 0), max(ranks)
    FROM (SELECT turn, column_place, kept_place, sum(size) AS size, count(*) AS originals, sum(distance) AS distance,
                 sum(steps) AS steps, max(rank) AS ranks
          FROM (SELECT turn, column_place, kept_place, meeting, original, count(*) AS size, sum(step) AS distance,
                       count(step) AS steps, max(rank) AS rank
                FROM (SELECT * EXCLUDE (number),    -- from one row to the next; a sort is quick if its keys are short
                             abs(rank - lag(rank IGNORE NULLS) OVER (PARTITION BY meeting
                                                                     ORDER BY number ASC NULLS LAST)) AS step
                      FROM (SELECT turn, column_place, kept_place, original, rank, number,
                                   hash(column_place, kept_place, label, kept) AS meeting
                            FROM (SELECT turn, place, CAST(unnest(range(1, 1 + len(kept))) AS INTEGER) AS kept_place,
                                         unnest(kept) AS kept
                                  FROM (SELECT turn, kept,
                                               CAST(row_number() OVER (
                                                        ORDER BY class ASC NULLS LAST,
                                                                 CASE WHEN turn = 0 THEN CAST(number AS UBIGINT)
                                                                      ELSE hash(number, turn) END ASC NULLS LAST)
                                                    AS INTEGER) AS place
                                        FROM _duckanon_kept, (SELECT max(turn) + 1 AS turn FROM _duckanon_turns)
                                        WHERE turn < 7))
                                 JOIN _duckanon_coarse USING (place)))
                GROUP BY turn, column_place, kept_place, meeting, original)
          GROUP BY turn, column_place, kept_place, meeting)
    GROUP BY turn, column_place, kept_place
), _duckanon_compared AS (
    SELECT column_place, kept_place, any_value(seen) FILTER (turn = 0) AS values_within,
           avg(seen) FILTER (turn > 0) AS values_shuffled, stddev(seen) FILTER (turn > 0) AS values_noise,
           any_value(distance) FILTER (turn = 0) AS within, avg(distance) FILTER (turn > 0) AS shuffled,
           stddev(distance) FILTER (turn > 0) AS noise, max(ranks) AS ranks
    FROM _duckanon_turns WHERE turn >= 0 GROUP BY column_place, kept_place
)
SELECT column_place, column_name, kept_place, kept_column, coalesce(values_within, 1) AS values_within,
       coalesce(values_shuffled, 1) AS values_shuffled,
       within / nullif(shuffled, 0) AS rank_distance_ratio, rank_correlation,
       CASE WHEN values_within < 0.9 * values_shuffled AND values_within < values_shuffled - 3 * values_noise
                 OR coalesce(ranks >= 30 AND within < 0.7 * shuffled AND within < shuffled - 3 * noise, false)
                 OR coalesce(is_beyond_chance, false) THEN true
            WHEN coalesce(is_unjudged, false) THEN NULL
            ELSE false END AS narrows
FROM _duckanon_coarse_names CROSS JOIN _duckanon_kept_names
     LEFT JOIN _duckanon_compared USING (column_place, kept_place)
     LEFT JOIN anon._rank_correlations('"_duckanon_fewer"') USING (column_place, kept_place)
WHERE (SELECT count(*) FROM _duckanon_sample) > 0;
