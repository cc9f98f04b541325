-- anon._column_spans: what anon._value_counts says about each column as a whole.
--     is_ordered   numbers and dates
--     unit         the step between neighbouring values: 1 where all are whole numbers, a day where all are midnights,
--                  else 0
--     placed       rows that have a number; is_finite: none of these is infinite or not a number
CREATE OR REPLACE MACRO anon._column_spans(value_counts) AS TABLE
SELECT place, any_value(kind) AS kind, any_value(kind) IN ('numeric', 'date') AS is_ordered,
       count(*) AS distinct_values, bool_or(value IS NULL) AS has_null,
       min(number) AS lowest, max(number) AS highest,
       CASE WHEN any_value(kind) = 'numeric' AND bool_and(number = floor(number)) THEN 1.0::DOUBLE
            WHEN any_value(kind) = 'date' AND bool_and(number % 86_400_000_000 = 0) THEN 86_400_000_000.0::DOUBLE
            ELSE 0.0::DOUBLE END AS unit,
       coalesce(sum(size) FILTER (number IS NOT NULL), 0)::BIGINT AS placed,
       coalesce(bool_and(isfinite(number)) FILTER (value IS NOT NULL), true)
       AND count(*) FILTER (value IS NOT NULL AND number IS NULL) = 0 AS is_finite
FROM query_table(value_counts) GROUP BY place;
