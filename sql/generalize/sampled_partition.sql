-- anon.sampled_partition: a column of numbers, dates or timestamps in about equal buckets, cut where a uniform sample
-- is cut: one pass over the table, in memory that depends on the sample alone.
--     lower, upper  where a bucket begins, and where the next one does: the roundest number between the values of the
--                   sample on both sides, or a value shared by at least 10 rows of the sample. NULL at the ends, which
--                   are somebody's values. DOUBLE for numbers, TIMESTAMP for dates
--     rows, cost    estimated from the sample
--     col           column of numbers, dates or timestamps [a name]
--     buckets       number of buckets, at most [a whole number, at least 1]
--     epsilon       largest distance of a cut from the rank where it belongs, as a share of the rows [a number between
--                   0 and 1]
--     delta         probability that some cut is farther away [a number between 0 and 1]
--     sample_rows   rows to draw; `rank_error` then says which epsilon that gives. NULL: as many as epsilon and delta
--                   need, ln(2 / delta) / (2 epsilon^2) [a whole number, at most 999,999, or NULL]
--     label         label of a bucket: its interval, or the median or mean of the sample, which need 10 of its rows in
--                   every bucket. The median is given where at least 10 rows share it, else the roundest number between
--                   the values of the 10 rows in the middle of the bucket [one of 'interval', 'median', 'mean']
-- The size of the sample follows from the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart, for all cuts at once.
-- The paper's 1 / epsilon ln(1 / delta) is too small by a factor of about 1 / (2 epsilon).
-- NULLs are left out. The sample is the sample_rows rows with the smallest random numbers: what a reservoir would hold.
-- Values between which no number can be written, such as neighbouring doubles, count as equal.
--     (Probabilistic Anonymity, Section 4.1, "Efficient Approximate Quantiles using Samples")
-- promises: InvariantUnder('storage', 'columns', 'others')
-- test: tests/generalize/sampled_partition.test
CREATE OR REPLACE MACRO anon.sampled_partition(
    tbl, col, buckets, epsilon := 0.005, delta := 0.05, sample_rows := NULL, label := 'interval'
) AS TABLE
WITH _duckanon_source AS (
    SELECT COLUMNS([col]) AS _duckanon_value
    FROM query_table(
        anon._checked_open_fraction('anon.sampled_partition', 'delta', delta,
            anon._checked_open_fraction('anon.sampled_partition', 'epsilon', epsilon,
                CASE WHEN anon._sample_size(epsilon, delta, sample_rows) NOT BETWEEN 1 AND 999999
                          THEN error('anon.sampled_partition: a sample must have 1 to 999999 rows; got '
                                     || anon._sample_size(epsilon, delta, sample_rows) || ', choose a larger epsilon.')
                     ELSE anon._checked_whole('anon.sampled_partition', 'buckets', buckets, 1,
                              anon._checked_choice('anon.sampled_partition', 'label', label,
                                                   ['interval', 'median', 'mean'],
                                                   anon._checked('anon.sampled_partition', tbl, [col]))) END)))
), _duckanon_sample AS MATERIALIZED (
    SELECT count(_duckanon_value) AS table_rows, any_value(typeof(_duckanon_value)) AS column_type,
           bool_or(CASE WHEN typeof(_duckanon_value) IN ('BIGINT', 'UBIGINT', 'HUGEINT', 'UHUGEINT', 'BIGNUM')
                             THEN abs(TRY_CAST(_duckanon_value AS DOUBLE)) >= pow(2, 53)
                        WHEN TRY_CAST(regexp_extract(typeof(_duckanon_value), '^DECIMAL\((\d+)', 1) AS INTEGER) > 15
                             THEN length(trim(regexp_replace(CAST(_duckanon_value AS VARCHAR), '[-.]', '', 'g'), '0'))
                                  > 15
                        WHEN starts_with(typeof(_duckanon_value), 'TIMESTAMP')     -- whole seconds are doubles to 9999
                             THEN abs(anon._plan_number(_duckanon_value)) >= pow(2, 53)
                                  AND date_part('microseconds', TRY_CAST(_duckanon_value AS TIMESTAMP)) % 1_000_000 <> 0
                        ELSE false END) AS is_inexact,
           bool_and(isfinite(anon._plan_number(_duckanon_value))) AS is_finite,
           list_sort(arg_min(anon._plan_number(_duckanon_value), anon._random(),
                             anon._sample_size(epsilon, delta, sample_rows))
                     FILTER (_duckanon_value IS NOT NULL), 'ASC', 'NULLS LAST') AS sample
    FROM _duckanon_source
), _duckanon_values AS (
    SELECT number, place, sampled, table_rows, column_type, lag(number) OVER (ORDER BY place ASC NULLS LAST) AS before,
           count(*) OVER (PARTITION BY number) AS holders
    FROM (SELECT unnest(sample) AS number, unnest(range(len(sample))) AS place, len(sample) AS sampled, table_rows,
                 column_type
          FROM _duckanon_sample
          WHERE anon._unless('anon.sampled_partition: column "' || col || '" '
                    || CASE WHEN anon._kind(column_type) NOT IN ('numeric', 'date')
                                 THEN 'must hold numbers, dates or timestamps; its type is ' || column_type || '.'
                            WHEN NOT is_finite THEN 'holds NaN or infinity; replace them by NULL or a number first.'
                            WHEN is_inexact
                                 THEN 'holds numbers that a double does not tell apart (whole ones from 2^53 on, '
                                      || 'decimals of more than 15 digits, microseconds far from 1970); divide or '
                                      || 'round it, or cast it to DOUBLE.' END))
), _duckanon_parts AS (                      -- what cannot be parted has one first place, hence one bucket
    SELECT *, max(CASE WHEN before IS NULL
                            OR (number > before
                                AND (holders >= 10
                                     OR (nextafter(before, 'infinity'::DOUBLE) < number
                                         AND (anon._kind(column_type) = 'numeric' OR before + 1 < number))))
                       THEN place END) OVER (ORDER BY place ASC NULLS LAST ROWS UNBOUNDED PRECEDING) AS first_place
    FROM _duckanon_values
), _duckanon_buckets AS (
    SELECT first_place * buckets // sampled AS bucket_place, min(number) AS least, max(number) AS largest,
           arg_min(holders, number) >= 10 AS is_least_shared, count(*) AS size, any_value(sampled) AS sampled,
           any_value(table_rows) AS table_rows, any_value(column_type) AS column_type,
           avg(number) AS mean, list(number ORDER BY number ASC NULLS LAST) FILTER (label = 'median') AS numbers
    FROM _duckanon_parts
    GROUP BY bucket_place
), _duckanon_cut AS (
    SELECT *, numbers[(size + 1) // 2] AS median, greatest(1, least((size + 1) // 2 - 5, size - 9)) AS middle,
           row_number() OVER (ORDER BY bucket_place ASC NULLS LAST) AS bucket,
           lag(largest) OVER (ORDER BY bucket_place ASC NULLS LAST) AS before
    FROM _duckanon_buckets
    -- In a filter, so that a refusal does not depend on the columns that are asked for.
    WHERE CASE WHEN label <> 'interval' AND size < 10
                    THEN error('anon.sampled_partition: label must be ''interval'' where a bucket has fewer than 10 '
                               || 'rows of the sample; got ''' || label || ''' and a bucket of ' || size
                               || ', so draw more rows or give fewer buckets.')
               ELSE true END
), _duckanon_written AS (                   -- the median where 10 rows share it, else between the 10 in the middle
    SELECT *, CASE WHEN label = 'mean' THEN mean
                   WHEN len(list_filter(numbers, lambda number: number = median)) >= 10 THEN median
                   WHEN label = 'median'
                        THEN anon._round_cut(numbers[middle], numbers[middle + 9], false, anon._kind(column_type)) END
                  AS point,
              CASE WHEN before IS NOT NULL
                   THEN anon._bound_text(anon._round_cut(before, least, is_least_shared, anon._kind(column_type)),
                                         column_type) END AS start
    FROM _duckanon_cut
), _duckanon_ended AS (
    SELECT *, lead(start) OVER (ORDER BY bucket ASC NULLS LAST) AS next_start FROM _duckanon_written
)
SELECT bucket, cast_to_type(start, _duckanon_bound) AS lower,
       cast_to_type(next_start, _duckanon_bound) AS upper,
       CAST(round(table_rows * (size / sampled)) AS BIGINT) AS "rows",
       coalesce(anon._bound_text(point, column_type),          -- no extreme value is published, and new ones fit in
                CASE WHEN bucket = 1 AND next_start IS NULL THEN '*'
                     WHEN bucket = 1 THEN '<' || next_start
                     WHEN next_start IS NULL THEN '>=' || start
                     ELSE '[' || start || ', ' || next_start || ')' END) AS label,
       floor(pow(table_rows * (size / sampled), 2) / 4) AS cost, sampled AS sample_rows,
       CASE WHEN sampled = table_rows THEN 0.0 ELSE sqrt(ln(2 / delta) / (2 * sampled)) END AS rank_error
FROM _duckanon_ended LEFT JOIN anon._bound_types(tbl, col) ON true
ORDER BY bucket ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.sampled_partition IS
    'About equal buckets for one column from one pass and a sample, with a guaranteed rank error.';
