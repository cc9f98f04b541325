-- anon._kept_pairs: whether columns that are kept tell more about columns that are made coarser than their labels do.
-- One row per pair: how many original values of `column_name` occur together with the row's value of `kept_column`
-- inside the row's label, on average over the rows; and how many do when the kept column is shuffled within the classes,
-- so that it tells nothing but what the class tells. Up to 20,000 rows are looked at, picked by the hash of their
-- numbers.
--     plan  the name of a plan's table; NULL: each value is its own label
CREATE OR REPLACE MACRO anon._kept_pairs(caller, tbl, cols, plan, keep, person) AS TABLE
WITH _duckanon_table_size AS (
    SELECT count(*) AS table_rows FROM query_table(tbl)
), _duckanon_rows AS (
    FROM query_table(tbl)
    QUALIFY hash(row_number() OVER ())
            <= 18446744073709551615 * least(1.0, 20_000 / greatest(1, (SELECT table_rows FROM _duckanon_table_size)))
), _duckanon_coarse_names AS (
    SELECT place AS column_place, column_name
    FROM (SELECT row_number() OVER (ORDER BY place ASC NULLS LAST) AS place, column_name
          FROM anon._columns(tbl) WHERE anon._is_among(column_name, cols))
), _duckanon_kept_names AS (
    SELECT row_number() OVER (ORDER BY place ASC NULLS LAST) AS kept_place, column_name AS kept_column
    FROM anon._columns(tbl) WHERE anon._is_kept(column_name, cols, keep, person)
), _duckanon_sample AS MATERIALIZED (
    SELECT *, hash(labels) AS class, row_number() OVER (PARTITION BY hash(labels) ORDER BY number ASC NULLS LAST) AS place,
           row_number() OVER (PARTITION BY hash(labels) ORDER BY hash(number, 1) ASC NULLS LAST) AS other_place
    FROM anon._coded_cells(caller, '_duckanon_rows', cols, plan, keep, person)
), _duckanon_versions AS (
    SELECT false AS is_shuffled, originals, labels, kept FROM _duckanon_sample
    UNION ALL
    SELECT true, own.originals, own.labels, other.kept
    FROM _duckanon_sample AS own JOIN _duckanon_sample AS other
         ON own.class = other.class AND own.place = other.other_place
), _duckanon_coarse AS (
    SELECT is_shuffled, unnest(range(1, 1 + len(labels))) AS column_place, unnest(labels) AS label,
           unnest(originals) AS original, kept
    FROM _duckanon_versions
), _duckanon_met AS (
    SELECT is_shuffled, column_place, label, original, unnest(range(1, 1 + len(kept))) AS kept_place,
           unnest(kept) AS kept
    FROM _duckanon_coarse
), _duckanon_counted AS (
    SELECT is_shuffled, column_place, kept_place, sum(size) AS size, count(*) AS originals
    FROM (SELECT is_shuffled, column_place, kept_place, label, kept, original, count(*) AS size
          FROM _duckanon_met GROUP BY ALL)
    GROUP BY is_shuffled, column_place, kept_place, label, kept
)
SELECT column_place, column_name, kept_place, kept_column,
       sum(size * originals) FILTER (NOT is_shuffled) / sum(size) FILTER (NOT is_shuffled) AS values_within,
       sum(size * originals) FILTER (is_shuffled) / sum(size) FILTER (is_shuffled) AS values_shuffled
FROM _duckanon_counted JOIN _duckanon_coarse_names USING (column_place) JOIN _duckanon_kept_names USING (kept_place)
GROUP BY ALL;
