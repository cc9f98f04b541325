-- anon._plan_lookup: a plan as lists that a value can be looked up in without a join, since a macro cannot write as
-- many joins as a plan has columns. One row:
--     names    the planned columns, in lower case, in the order of `columns`
--     columns  where each column's buckets are in the flat lists (first .. last), how to search them, and the labels of
--              NULL and of values that the plan has never seen; for anon.plan_coverage, where the fitted range begins
--              and ends (NULL: it is open), and the share of the fitted rows in the first and the last bucket
--     numbers, texts, labels    of all buckets, sorted within each column: where a bucket begins, what it is called
--     grid     for each cell of an even grid over a column of numbers, the last bucket that begins before the cell.
--              There are so many cells that few hold more than one beginning: most values are one comparison from their
--              bucket
-- `steps` are the strides of the binary search that is left to do: none is longer than the most crowded cell or, for
-- texts, than the column.
CREATE OR REPLACE MACRO anon._plan_lookup(caller, tbl, plan) AS TABLE
WITH _duckanon_buckets AS MATERIALIZED (
    SELECT lower(column_name) AS column_name, covers, label, CAST(lower AS VARCHAR) AS "text",
           anon._plan_bound(covers, CAST(lower AS VARCHAR)) AS number,
           anon._plan_bound(covers, CAST(upper AS VARCHAR)) AS upper_number, "rows" AS bucket_rows,
           "rows" > 0 AS is_fitted
    FROM query_table(plan)
), _duckanon_placed AS (
    SELECT *, row_number() OVER (PARTITION BY column_name ORDER BY number ASC NULLS FIRST) > 1 AS is_cut,
           CAST(row_number() OVER (
               ORDER BY column_name ASC NULLS LAST, number ASC NULLS FIRST, "text" ASC NULLS FIRST) AS INTEGER) AS place
    FROM _duckanon_buckets
    WHERE covers IN ('number', 'time', 'value', 'prefix')
), _duckanon_spans AS (
    SELECT column_name, any_value(covers) AS covers, min(place) AS first, max(place) AS last,
           coalesce(min(number) FILTER (is_cut), 0) AS origin, CAST(least(64 * count(*), 65536) AS INTEGER) AS cells,
           coalesce(cells / nullif(max(number) FILTER (is_cut) - min(number) FILTER (is_cut), 0), 0) AS scale,
           CASE WHEN bool_and(number IS NOT NULL) FILTER (is_fitted) THEN min(number) FILTER (is_fitted) END
               AS least_number,
           CASE WHEN bool_and(upper_number IS NOT NULL) FILTER (is_fitted) THEN max(upper_number) FILTER (is_fitted) END
               AS end_number,
           (arg_min(bucket_rows, place) + CASE WHEN count(*) > 1 THEN arg_max(bucket_rows, place) ELSE 0 END)
               / nullif(sum(bucket_rows), 0) AS fitted_outer_fraction
    FROM _duckanon_placed
    GROUP BY column_name
), _duckanon_crowds AS (
    SELECT column_name, anon._plan_cell(number, origin, scale, cells) AS cell, count(*) AS crowd
    FROM _duckanon_placed JOIN _duckanon_spans USING (column_name)
    WHERE is_cut AND number IS NOT NULL
    GROUP BY ALL
), _duckanon_grid AS (
    SELECT column_name, cell, crowd,
           row_number() OVER (ORDER BY column_name ASC NULLS LAST, cell ASC NULLS LAST) AS place,
           CAST(coalesce(first + sum(crowd) OVER (PARTITION BY column_name ORDER BY cell ASC NULLS LAST
                                                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
                         first) AS INTEGER) AS base
    FROM (SELECT column_name, first, CAST(unnest(range(cells)) AS INTEGER) AS cell
          FROM _duckanon_spans WHERE covers IN ('number', 'time')) LEFT JOIN _duckanon_crowds USING (column_name, cell)
), _duckanon_columns AS (
    SELECT column_name, coalesce(covers IN ('number', 'time'), false) AS is_number,
           coalesce(covers IN ('value', 'prefix'), false) AS is_text, coalesce(covers = 'prefix', false) AS is_prefix,
           first, last, origin, scale, cells, CAST(grid_first AS INTEGER) AS grid_first, most AS crowd,
           list_sort(list_transform(range(CAST(ceil(log2(1 + coalesce(most, last - first + 1))) AS INTEGER)),
                                    lambda doublings: CAST(1::BIGINT << doublings AS INTEGER)),
                     'DESC', 'NULLS LAST') AS steps,
           null_label, rest_label, column_type, covers, least_number, end_number,
           CASE WHEN covers IN ('number', 'time') THEN fitted_outer_fraction END AS fitted_outer_fraction
    FROM (SELECT column_name, max(label) FILTER (covers = 'null') AS null_label,
                 max(label) FILTER (covers = 'rest') AS rest_label
          FROM _duckanon_buckets GROUP BY column_name)
         LEFT JOIN _duckanon_spans USING (column_name)
         LEFT JOIN (SELECT column_name, min(place) AS grid_first, max(coalesce(crowd, 0)) AS most
                    FROM _duckanon_grid GROUP BY column_name) USING (column_name)
         LEFT JOIN (SELECT lower(column_name) AS column_name, column_type
                    FROM anon._columns(anon._checked(caller, tbl, ['*']))) USING (column_name)
)
SELECT CASE WHEN names IS NULL THEN error(caller || ': the plan has no rows; make one with anon.plan.')
            WHEN len(missing) > 0 THEN error(caller || ': the table has no column "' || missing[1]
                                             || '", which the plan is for; apply the plan to a table that has it.')
            WHEN len(unlike) > 0 THEN error(caller || ': ' || unlike[1])
            ELSE names END AS names, columns,
       (SELECT list(number ORDER BY place ASC NULLS LAST) FROM _duckanon_placed) AS numbers,
       (SELECT list("text" ORDER BY place ASC NULLS LAST) FROM _duckanon_placed) AS texts,
       (SELECT list(label ORDER BY place ASC NULLS LAST) FROM _duckanon_placed) AS labels,
       (SELECT list(base ORDER BY place ASC NULLS LAST) FROM _duckanon_grid) AS grid
FROM (SELECT list(column_name ORDER BY column_name ASC NULLS LAST) AS names,
             list(struct_pack(is_number, is_text, is_prefix, first, last, origin, scale, cells, grid_first, crowd,
                              steps, null_label, rest_label, least_number, end_number, fitted_outer_fraction)
                  ORDER BY column_name ASC NULLS LAST) AS columns,
             list(column_name ORDER BY column_name ASC NULLS LAST) FILTER (column_type IS NULL) AS missing,
             list(anon._unlike_plan(column_name, column_type, covers) ORDER BY column_name ASC NULLS LAST)
                 FILTER (anon._unlike_plan(column_name, column_type, covers) IS NOT NULL) AS unlike
      FROM _duckanon_columns);
