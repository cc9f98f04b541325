-- anon.interval_quantiles: quantiles of columns of intervals, each with a range that holds the quantile of every table
-- within the boxes, including the original. Some table attains each end.
--     estimate      with every record at the midpoint of its interval; of an open one, at the end that it has
--     lower, upper  the r-th smallest of all lower and of all upper ends; infinite where that is open (NULL)
--     records       number of records
--     cols          columns of intervals, or of exact numbers and dates [a list of names]
--     quantiles     which quantiles: the quantile q of n values is the r-th smallest, r = q n rounded up, at least 1
--                   (DuckDB's quantile_disc) [a list of numbers from 0 to 1]
--     by            exact columns: one answer for each group of records with the same values in them; NULL: one answer
--                   for all [a list of names, or NULL]
-- Dates and timestamps count in days since 1970.
-- promises: EstimatesInside(), InvariantUnder(*TABLE)
-- test: tests/release/interval_quantiles.test
CREATE OR REPLACE MACRO anon.interval_quantiles(boxed, cols, quantiles := [0.25, 0.5, 0.75], by := NULL) AS TABLE
WITH _duckanon_shaped AS (
    SELECT *, NULL AS _duckanon_none
    FROM anon._intervals('anon.interval_quantiles',
        CASE WHEN ends_with(typeof(quantiles), ']') AND len(TRY_CAST(quantiles AS DOUBLE[])) > 0
                  AND len(list_filter(TRY_CAST(quantiles AS DOUBLE[]), lambda share: share BETWEEN 0 AND 1))
                      = len(TRY_CAST(quantiles AS DOUBLE[]))
                  THEN anon._checked_by('anon.interval_quantiles', "by", cols,
                           ['column_name', 'quantile', 'estimate', 'lower', 'upper', 'records'],
                           anon._checked('anon.interval_quantiles', boxed, cols))
             ELSE error(anon._must_be('anon.interval_quantiles', 'quantiles',
                                      'a list of numbers from 0 to 1 such as [0.25, 0.5, 0.75]', quantiles)) END, boxed)
), _duckanon_cells AS (
    SELECT COLUMNS(anon._group_columns("by")),
           struct_pack(ends := struct_extract({'interval': COLUMNS(cols),
                                               'exact': {'lo': COLUMNS(cols), 'hi': COLUMNS(cols)}},
                                              anon._interval_or_exact(COLUMNS(cols))),
                       is_missing := COLUMNS(cols) IS NULL)
    FROM _duckanon_shaped
    WHERE anon._unless((SELECT sentence FROM anon._refused_groups('anon.interval_quantiles', boxed, "by")))
      AND anon._unless(anon._endless('anon.interval_quantiles', alias(COLUMNS(cols)), typeof(COLUMNS(cols))))
), _duckanon_known AS (             -- as numbers, times in days since 1970, with infinity for ends that are open
    SELECT COLUMNS(anon._group_columns("by")),
           struct_pack(lo := coalesce(anon._days((COLUMNS(cols)).ends.lo), CAST('-inf' AS DOUBLE)),
                       hi := coalesce(anon._days((COLUMNS(cols)).ends.hi), CAST('inf' AS DOUBLE)),
                       is_missing := (COLUMNS(cols)).is_missing)
    FROM _duckanon_cells
), _duckanon_found AS MATERIALIZED (
    SELECT struct_pack(*COLUMNS(anon._group_columns("by"))) AS _duckanon_key,
           [UNPACK(anon._quantile_ends(alias(COLUMNS(cols)), COLUMNS(cols), quantiles))] AS _duckanon_columns
    FROM _duckanon_known GROUP BY ALL
), _duckanon_checked AS (
    SELECT anon._checked_rows('anon.interval_quantiles', count(*), true) AS _duckanon_has_rows,
           'anon.interval_quantiles: ' || min(_duckanon_column.refused) AS _duckanon_refused
    FROM (SELECT unnest(_duckanon_columns) AS _duckanon_column FROM _duckanon_found)
), _duckanon_by_column AS (
    SELECT _duckanon_key, unnest(_duckanon_columns) AS _duckanon_column, unnest(range(len(cols))) AS _duckanon_place
    FROM _duckanon_found, _duckanon_checked
    WHERE _duckanon_has_rows AND anon._unless(_duckanon_refused)
), _duckanon_rows AS (
    SELECT unnest(_duckanon_key), _duckanon_key, _duckanon_place, unnest(range(len(quantiles))) AS _duckanon_next_place,
           _duckanon_column.name AS column_name, unnest(CAST(quantiles AS DOUBLE[])) AS quantile,
           unnest(_duckanon_column.estimate) AS estimate, unnest(_duckanon_column.lower) AS lower,
           unnest(_duckanon_column.upper) AS upper, _duckanon_column.records AS records
    FROM _duckanon_by_column
)
SELECT COLUMNS(lambda name: NOT starts_with(name, '_duckanon_')) FROM _duckanon_rows
ORDER BY _duckanon_key ASC NULLS LAST, _duckanon_place ASC NULLS LAST, _duckanon_next_place ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.interval_quantiles IS
    'Quantiles of columns of intervals, each with the exact range that it can lie in.';
