-- anon.sampled_partition: a column of numbers, dates or timestamps in about equal buckets, cut where a uniform sample
-- is cut: one pass over the table, in memory that depends on the sample alone.
--     epsilon, delta  with a probability of 1 - delta, all cuts at once are at most epsilon times the number of rows
--                     away from the rank where they belong: sample_rows = ln(2 / delta) / (2 epsilon^2), the inequality
--                     of Dvoretzky, Kiefer, Wolfowitz and Massart. The paper's 1 / epsilon ln(1 / delta) is too few by
--                     a factor of about 1 / (2 epsilon)
--     sample_rows     how many rows to draw, at most 999,999; `rank_error` then says which epsilon that gives. NULL: as
--                     many as epsilon and delta ask for
--     label           'interval', or 'median' or 'mean' of the sample
--     lower, upper    where a bucket begins, and where the next one does: round numbers between values of the sample;
--                     at the ends its smallest and largest value
--     rows, cost      estimated from the sample
-- NULLs are left out. The sample is the sample_rows rows with the smallest random numbers: what a reservoir would hold.
--     (Probabilistic Anonymity, Section 4.1, "Efficient Approximate Quantiles using Samples")
-- test: tests/generalize/sampled_partition.test
CREATE OR REPLACE MACRO anon.sampled_partition(
    tbl, col, buckets, epsilon := 0.005, delta := 0.05, sample_rows := NULL, label := 'interval'
) AS TABLE
WITH _duckanon_sample AS MATERIALIZED (
    SELECT count(_duckanon_value) AS table_rows,
           list_sort(arg_min(_duckanon_value, random(), anon._sample_size(epsilon, delta, sample_rows))
                     FILTER (_duckanon_value IS NOT NULL), 'ASC', 'NULLS LAST') AS sample
    FROM (SELECT COLUMNS([col]) AS _duckanon_value
          FROM query_table(anon._checked_sample('anon.sampled_partition', buckets, epsilon, delta, sample_rows, label,
                                                anon._checked('anon.sampled_partition', tbl, [col]))))
), _duckanon_values AS (
    SELECT value, rank() OVER (ORDER BY value ASC NULLS LAST) - 1 AS first_place, sampled, table_rows
    FROM (SELECT unnest(sample) AS value, len(sample) AS sampled, table_rows FROM _duckanon_sample)
), _duckanon_buckets AS (                              -- equal values have one first place, hence one bucket
    SELECT first_place * buckets // sampled AS place, min(value) AS least, max(value) AS largest, count(*) AS size,
           any_value(sampled) AS sampled, any_value(table_rows) AS table_rows, quantile_disc(value, 0.5) AS median,
           avg(anon._plan_number(value)) AS mean
    FROM _duckanon_values
    GROUP BY place
), _duckanon_cut AS (
    SELECT *, row_number() OVER (ORDER BY place ASC NULLS LAST) AS bucket,
           anon._readable(lag(largest) OVER (ORDER BY place ASC NULLS LAST), least) AS lower
    FROM _duckanon_buckets
)
SELECT bucket, lower, coalesce(lead(lower) OVER (ORDER BY place ASC NULLS LAST), largest) AS upper,
       CAST(round(table_rows * (size / sampled)) AS BIGINT) AS "rows",
       CASE WHEN anon._kind(typeof(lower)) NOT IN ('numeric', 'date')
                 THEN error('anon.sampled_partition: column "' || col || '" must hold numbers, dates or timestamps; '
                            || 'its type is ' || typeof(lower) || '.')
            WHEN label = 'median' THEN CAST(median AS VARCHAR)
            WHEN label = 'mean' AND anon._kind(typeof(lower)) = 'date'
                 THEN CAST(make_timestamp(CAST(mean AS BIGINT)) AS VARCHAR)
            WHEN label = 'mean' THEN CAST(mean AS VARCHAR)
            ELSE anon._run_label(CAST(lower AS VARCHAR),
                                 CAST(lead(lower) OVER (ORDER BY place ASC NULLS LAST) AS VARCHAR),
                                 bucket = 1) END AS label,
       floor(pow(table_rows * (size / sampled), 2) / 4) AS cost, sampled AS sample_rows,
       CASE WHEN sampled = table_rows THEN 0.0 ELSE sqrt(ln(2 / delta) / (2 * sampled)) END AS rank_error
FROM _duckanon_cut
ORDER BY bucket ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.sampled_partition IS
    'About equal buckets for one column from one pass and a sample, with the rank error that is guaranteed.';
