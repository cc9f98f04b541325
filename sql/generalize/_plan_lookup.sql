-- anon._plan_lookup: a plan as lists that a value can be looked up in without a join, since a macro cannot write as
-- many joins as a plan has columns. One row. Of each planned column, in the order of `names` (in lower case), lists of
-- single values, which DuckDB takes out of a list once a block (structs it would copy for every row):
--     is_number, is_text, is_hashed, is_prefix   what a value is looked up by: a number; a text, by its hash or in the
--              order of texts; a text as a whole or by how it begins (`letters`: how many, where it is hashed)
--     first, last   where the column's buckets are in the flat lists
--     origin, ceiling, scale, shift, last_cell, grid_first   the grid over the column (anon._plan_cell)
--     crowd, steps   the most beginnings in one cell of the grid, and the strides of the search where it is more than 2
--     null_label, null_code, rest_label, rest_code   of NULL, and of values that the plan has never seen
--     least_number, end_number, fitted_outer_fraction   for anon.plan_coverage: where the fitted range begins and ends
--              (NULL: it is open), and the share of the fitted rows in the first and the last bucket
-- and flat lists:
--     numbers, texts, labels, codes   of all buckets, sorted within each column: where a bucket begins, what it is
--              called, and the label's number, its place among all in the order of their bytes, 0 for none. Behind the
--              last of each column stands a NULL
--     grid     for each cell of the even grid over a column, the last bucket that begins before the cell. There are so
--              many cells that few hold more than one beginning: most values are one comparison from their bucket
-- The hashes of texts lie evenly on the number line. Where two texts of a column have the same one, or prefixes have
-- several lengths, the texts are searched in their order instead.
CREATE OR REPLACE MACRO anon._plan_lookup(caller, tbl, plan) AS TABLE
WITH _duckanon_buckets AS MATERIALIZED (
    SELECT lower(column_name) AS column_name, covers, label, CAST(lower AS VARCHAR) AS "text",
           anon._plan_bound(covers, CAST(lower AS VARCHAR)) AS bound,
           CAST(hash(CAST(lower AS VARCHAR)) AS DOUBLE) AS text_hash,
           anon._plan_bound(covers, CAST(upper AS VARCHAR)) AS upper_number, "rows" AS bucket_rows,
           "rows" > 0 AS is_fitted,
           CASE WHEN label IS NULL THEN 0
                ELSE dense_rank() OVER (ORDER BY encode(label) ASC NULLS LAST) END::INTEGER AS code
    FROM query_table(plan)
), _duckanon_texts AS (
    SELECT column_name, count(DISTINCT text_hash) = count(DISTINCT encode("text"))
               AND (any_value(covers) = 'value' OR min(length("text")) = max(length("text"))) AS is_hashed,
           CASE WHEN is_hashed AND any_value(covers) = 'prefix' THEN max(length("text")) END AS letters
    FROM _duckanon_buckets WHERE covers IN ('value', 'prefix') GROUP BY column_name
), _duckanon_ended AS (
    SELECT column_name, covers, label, code, "text", CASE WHEN is_hashed THEN text_hash ELSE bound END AS number,
           bound, upper_number, bucket_rows, is_fitted, letters, is_hashed, false AS is_end
    FROM _duckanon_buckets LEFT JOIN _duckanon_texts USING (column_name)
    WHERE covers IN ('number', 'time', 'value', 'prefix')
    UNION ALL
    SELECT DISTINCT column_name, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, true
    FROM _duckanon_buckets
), _duckanon_placed AS MATERIALIZED (
    SELECT *, NOT is_end AND row_number() OVER (PARTITION BY column_name
                                                ORDER BY is_end ASC NULLS LAST, number ASC NULLS FIRST) > 1 AS is_cut,
           CAST(row_number() OVER (ORDER BY column_name ASC NULLS LAST, is_end ASC NULLS LAST, number ASC NULLS FIRST,
                                            "text" ASC NULLS FIRST) AS INTEGER) AS place
    FROM _duckanon_ended
), _duckanon_ranges AS (
    SELECT column_name, any_value(covers) AS covers, coalesce(any_value(is_hashed), false) AS is_hashed,
           any_value(letters) AS letters, min(place) AS first, max(place) AS last,
           coalesce(min(number) FILTER (is_cut), 0) AS origin, coalesce(max(number) FILTER (is_cut), 0) AS ceiling,
           ceiling - origin AS reach, least(64 * count(*), 262144) - 1 AS steps_within,
           CASE WHEN isfinite(reach) AND isfinite(steps_within / nullif(reach, 0))     -- else all are in one cell
                THEN steps_within / nullif(reach, 0) ELSE 0.0 END AS scale,
           CASE WHEN bool_and(bound IS NOT NULL) FILTER (is_fitted) THEN min(bound) FILTER (is_fitted) END
               AS least_number,
           CASE WHEN bool_and(upper_number IS NOT NULL) FILTER (is_fitted) THEN max(upper_number) FILTER (is_fitted) END
               AS end_number,
           (arg_min(bucket_rows, place) + CASE WHEN count(*) > 1 THEN arg_max(bucket_rows, place) ELSE 0 END)
               / nullif(sum(bucket_rows), 0) AS fitted_outer_fraction
    FROM _duckanon_placed WHERE NOT is_end
    GROUP BY column_name
), _duckanon_spans AS (
    SELECT *, origin * scale AS shift, CAST(ceiling * scale - origin * scale AS INTEGER) AS last_cell,
           covers IN ('number', 'time') OR is_hashed AS has_grid
    FROM _duckanon_ranges
), _duckanon_crowds AS (
    SELECT column_name, anon._plan_cell(number, origin, ceiling, scale, shift, last_cell) AS cell, count(*) AS crowd
    FROM _duckanon_placed JOIN _duckanon_spans USING (column_name)
    WHERE is_cut AND number IS NOT NULL
    GROUP BY ALL
), _duckanon_grid AS MATERIALIZED (
    SELECT column_name, cell, crowd,
           row_number() OVER (ORDER BY column_name ASC NULLS LAST, cell ASC NULLS LAST) AS place,
           CAST(coalesce(first + sum(crowd) OVER (PARTITION BY column_name ORDER BY cell ASC NULLS LAST
                                                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
                         first) AS INTEGER) AS base
    FROM (SELECT column_name, first, CAST(unnest(range(last_cell + 1)) AS INTEGER) AS cell
          FROM _duckanon_spans WHERE has_grid) LEFT JOIN _duckanon_crowds USING (column_name, cell)
), _duckanon_columns AS MATERIALIZED (
    SELECT column_name AS names, coalesce(covers IN ('number', 'time'), false) AS is_number,
           coalesce(covers IN ('value', 'prefix'), false) AS is_text, coalesce(is_hashed, false) AS is_hashed,
           coalesce(covers = 'prefix', false) AS is_prefix, letters, first, last, origin, ceiling, scale, shift,
           last_cell, CAST(grid_first AS INTEGER) AS grid_first, most AS crowd,
           list_sort(list_transform(range(CAST(ceil(log2(1 + coalesce(most, last - first + 1))) AS INTEGER)),
                                    lambda doublings: CAST(1::BIGINT << doublings AS INTEGER)),
                     'DESC', 'NULLS LAST') AS steps,
           null_label, null_code, rest_label, rest_code, least_number, end_number,
           CASE WHEN covers IN ('number', 'time') THEN fitted_outer_fraction END AS fitted_outer_fraction,
           column_type, covers
    FROM (SELECT column_name, max(label) FILTER (covers = 'null') AS null_label,
                 coalesce(max(code) FILTER (covers = 'null'), 0) AS null_code,
                 max(label) FILTER (covers = 'rest') AS rest_label,
                 coalesce(max(code) FILTER (covers = 'rest'), 0) AS rest_code
          FROM _duckanon_buckets GROUP BY column_name)
         LEFT JOIN _duckanon_spans USING (column_name)
         LEFT JOIN (SELECT column_name, min(place) AS grid_first, max(coalesce(crowd, 0)) AS most
                    FROM _duckanon_grid GROUP BY column_name) USING (column_name)
         LEFT JOIN (SELECT lower(column_name) AS column_name, column_type
                    FROM anon._columns(anon._checked(caller, tbl, ['*']))) USING (column_name)
)
SELECT * EXCLUDE (column_type, covers),
       (SELECT list(number ORDER BY place ASC NULLS LAST) FROM _duckanon_placed) AS numbers,
       (SELECT list("text" ORDER BY place ASC NULLS LAST) FROM _duckanon_placed) AS texts,
       (SELECT list(label ORDER BY place ASC NULLS LAST) FROM _duckanon_placed) AS labels,
       (SELECT list(code ORDER BY place ASC NULLS LAST) FROM _duckanon_placed) AS codes,
       (SELECT list(base ORDER BY place ASC NULLS LAST) FROM _duckanon_grid) AS grid
FROM (SELECT list(COLUMNS(*) ORDER BY names ASC NULLS LAST) FROM _duckanon_columns)
-- a text such as 2024-05-01 is no time, and would silently get the label of the rest; texts of numbers are read
WHERE anon._unless((
    SELECT caller || ': ' || CASE WHEN columns = 0 THEN 'the plan has no rows; make one with anon.plan.'
                                  WHEN missing IS NOT NULL
                                       THEN 'the table has no column "' || missing || '", which the plan is for; apply '
                                            || 'the plan to a table that has it.'
                                  ELSE unlike || ', as the plan''s does; its type is ' || type || ': cast it first.' END
    FROM (SELECT count(*) AS columns, min(names) FILTER (column_type IS NULL) AS missing,
                 arg_min(must_hold, names) AS unlike, arg_min(column_type, names) FILTER (must_hold IS NOT NULL) AS type
          FROM (SELECT *, 'column "' || names || '" must hold '
                          || CASE WHEN column_type = '"NULL"' THEN NULL
                                  WHEN covers = 'time' AND anon._kind(column_type) <> 'date' THEN 'dates or timestamps'
                                  WHEN covers = 'number' AND anon._kind(column_type) NOT IN ('numeric', 'text')
                                       THEN 'numbers' END AS must_hold
                FROM _duckanon_columns))));
