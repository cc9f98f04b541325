-- anon._label_losses: the normalized certainty penalty of every released label, 0 for a single value and 1 for
-- everything; for numbers and dates also the smallest and largest number that it holds.
--     numbers and dates  width of the interval, cut at the original's ends, over the original's range; where all values
--                        are whole [40, 50) reaches from 40 to 49
--     everything else    (values that it stands for - 1) / (values of the original - 1); 'other' is what no other label
--                        says
--     is_ordered, has_null   of the column; stands_for: values that the label names, NULL where it names none
--     spans, labels, covered, names  names of steps; covered: anon._label_leaves; names: place and column_name
CREATE OR REPLACE MACRO anon._label_losses(caller, spans, labels, covered, names) AS TABLE
WITH _duckanon_meant AS (
    SELECT place, label, count(DISTINCT value) AS stands_for, min(number) AS first_leaf, max(number) AS last_leaf
    FROM query_table(covered) GROUP BY place, label
), _duckanon_named AS (
    SELECT place, count(DISTINCT value) AS named FROM query_table(covered) GROUP BY place
), _duckanon_bounded AS (
    SELECT place, column_name, label, size, is_ordered, is_finite, distinct_values, has_null, lowest, highest, unit,
           stands_for,
           distinct_values - coalesce(named, 0)        -- what is left for the label 'other'
               - (has_null AND bool_or(label IS NULL) OVER (PARTITION BY place))::INTEGER AS others,
           CASE WHEN is_ordered AND stands_for > 0 THEN anon._interval(first_leaf, true, last_leaf, true)
                WHEN kind = 'numeric' AND isfinite(TRY_CAST(label AS DOUBLE))      -- there may be many: read quickly
                     THEN anon._interval(TRY_CAST(label AS DOUBLE), true, TRY_CAST(label AS DOUBLE), true)
                WHEN is_ordered THEN anon._label_bounds(label, kind) END AS bounds
    FROM query_table(labels) JOIN query_table(spans) USING (place) JOIN query_table(names) USING (place)
    LEFT JOIN _duckanon_named USING (place) LEFT JOIN _duckanon_meant USING (place, label)
), _duckanon_closed AS (                               -- on whole numbers [40, 50) ends at 49, on others just below 50
    SELECT *, CASE WHEN bounds.lower IS NULL THEN '-infinity'::DOUBLE
                   WHEN unit > 0 AND bounds.lower_closed THEN ceil(bounds.lower / unit) * unit
                   WHEN unit > 0 THEN (floor(bounds.lower / unit) + 1) * unit
                   WHEN bounds.lower_closed THEN bounds.lower
                   ELSE nextafter(bounds.lower, 'infinity'::DOUBLE) END AS held_from,
              CASE WHEN bounds.upper IS NULL THEN 'infinity'::DOUBLE
                   WHEN unit > 0 AND bounds.upper_closed THEN floor(bounds.upper / unit) * unit
                   WHEN unit > 0 THEN (ceil(bounds.upper / unit) - 1) * unit
                   WHEN bounds.upper_closed THEN bounds.upper
                   ELSE nextafter(bounds.upper, '-infinity'::DOUBLE) END AS held_to
    FROM _duckanon_bounded
)
SELECT place, label, size, is_ordered, has_null, stands_for, is_ordered AND label IS NOT NULL AS is_held, held_from,
       held_to,
       CASE WHEN is_ordered AND NOT is_finite
                 THEN error(caller || ': column ' || column_name || ' has values that are infinite or not numbers.')
            WHEN label IS NOT NULL AND label <> '*'
                 AND CASE WHEN is_ordered THEN bounds IS NULL OR coalesce(bounds.lower > bounds.upper, false)
                          ELSE label <> 'other' AND stands_for IS NULL END
                 THEN error(caller || ': column ' || column_name || ' of the release has a label that is '
                                   || 'no value of the original''s column, no range, prefix or set of them '
                                   || 'and in no hierarchy of the column; name its hierarchy in hierarchies.')
            WHEN distinct_values <= 1 THEN 0.0::DOUBLE
            WHEN label IS NULL THEN CASE WHEN has_null THEN 0.0::DOUBLE ELSE 1.0::DOUBLE END
            WHEN label = '*' THEN 1.0::DOUBLE
            WHEN is_ordered AND highest > lowest
                 THEN greatest(0, least(highest, CASE WHEN unit > 0 THEN held_to
                                                      ELSE coalesce(bounds.upper, highest) END)
                                  - greatest(lowest, CASE WHEN unit > 0 THEN held_from
                                                          ELSE coalesce(bounds.lower, lowest) END))
                      / (highest - lowest)
            WHEN is_ordered THEN 0.0::DOUBLE
            ELSE greatest(coalesce(stands_for, others) - 1, 0) / (distinct_values - 1)
            END AS ncp
FROM _duckanon_closed;
