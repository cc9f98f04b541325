-- anon._label_parts: a number, `part`, for every value of the people and for every label of a release: a label can hold
-- a value only where the two have the same number, or where the label's is one that must be tried with every value.
--     0            labels that say everything: to be tried with every value
--     1, 2, ...    in columns in which no value has two labels: the label's own number, and that of the value's label;
--                  -2 for values that have none
--     -3, -4, ...  in the others: the sorted values are cut into buckets, so many that a label lies in about two, and a
--                  label has the numbers of those that its values are in; only in the four columns whose labels are
--                  narrowest, and for labels in at most four buckets
--     -1           all other labels: to be tried with every value
--     value, number  a value and its place on the number line; their label_number is NULL
--     lists, rules   names of steps: anon._cell_lists of the people, anon._label_rules
CREATE OR REPLACE MACRO anon._label_parts(lists, rules) AS TABLE
WITH _duckanon_columns AS MATERIALIZED (
    SELECT place, bool_and(is_exact) AS is_exact FROM query_table(rules) GROUP BY place
), _duckanon_values AS MATERIALIZED (
    SELECT place, is_exact, value, anon._any_number(value) AS number
    FROM (SELECT DISTINCT place, value
          FROM (SELECT unnest(range(1, 1 + len(cells))) AS place, unnest(cells) AS value FROM query_table(lists)))
    JOIN _duckanon_columns USING (place)
), _duckanon_bounds AS MATERIALIZED (
    SELECT place, number AS label_number, held_from, held_to, is_exact FROM query_table(rules) WHERE rule = 'interval'
), _duckanon_listed AS MATERIALIZED (
    SELECT place, number AS label_number, value, is_exact FROM query_table(rules) WHERE rule = 'listed'
), _duckanon_begun_last AS (                           -- the last interval that begins at or before a value
    SELECT place, value, number, is_value, last_value(label_number IGNORE NULLS) OVER place_order AS label_number,
           last_value(held_to IGNORE NULLS) OVER place_order AS held_to
    FROM (SELECT place, value, number, true AS is_value, NULL AS label_number, NULL AS held_to
          FROM _duckanon_values WHERE number IS NOT NULL AND is_exact
          UNION ALL
          SELECT place, NULL, held_from, false, label_number, held_to FROM _duckanon_bounds WHERE is_exact)
    WINDOW place_order AS (PARTITION BY place ORDER BY number ASC NULLS LAST, is_value ASC NULLS LAST
                           ROWS UNBOUNDED PRECEDING)
), _duckanon_exact AS (                                -- the one label of a value, where there is one
    SELECT place, value, label_number FROM _duckanon_begun_last WHERE is_value AND number <= held_to
    UNION ALL
    SELECT every.place, every.value, listed.label_number
    FROM _duckanon_values AS every JOIN _duckanon_listed AS listed
         ON every.place = listed.place AND every.value IS NOT DISTINCT FROM listed.value AND listed.is_exact
), _duckanon_ranks AS MATERIALIZED (                   -- what has no number comes last
    SELECT place, value, number,
           row_number() OVER (PARTITION BY place ORDER BY number ASC NULLS LAST, value ASC NULLS LAST) - 1
               AS value_rank,
           count(*) OVER (PARTITION BY place) AS different
    FROM _duckanon_values WHERE NOT is_exact
), _duckanon_reached AS (                              -- how many values are below an interval, how many up to its end
    SELECT place, label_number, min(below) AS first_rank, max(below) - 1 AS last_rank
    FROM (SELECT place, label_number, count(*) FILTER (label_number IS NULL) OVER (
                     PARTITION BY place ORDER BY number ASC NULLS LAST, side ASC NULLS LAST
                     ROWS UNBOUNDED PRECEDING) AS below
          FROM (SELECT place, NULL AS label_number, number, 1 AS side FROM _duckanon_ranks WHERE number IS NOT NULL
                UNION ALL
                SELECT place, label_number, held_from, 0 FROM _duckanon_bounds WHERE NOT is_exact
                UNION ALL
                SELECT place, label_number, held_to, 2 FROM _duckanon_bounds WHERE NOT is_exact))
    WHERE label_number IS NOT NULL GROUP BY place, label_number
), _duckanon_held AS MATERIALIZED (
    SELECT place, label_number, first_rank, last_rank, NULL AS ranks, last_rank - first_rank + 1 AS held
    FROM _duckanon_reached
    UNION ALL
    SELECT listed.place, listed.label_number, NULL, NULL, list(value_rank), count(*)
    FROM _duckanon_listed AS listed
    JOIN _duckanon_ranks AS ranked ON ranked.place = listed.place AND ranked.value IS NOT DISTINCT FROM listed.value
    GROUP BY listed.place, listed.label_number
), _duckanon_cuts AS MATERIALIZED (
    SELECT place, different,
           CASE WHEN share < 0.5 AND row_number() OVER (ORDER BY share ASC NULLS LAST, place ASC NULLS LAST) <= 4
                THEN floor(1 / share)::BIGINT END AS buckets
    FROM (SELECT labels.place, any_value(different) AS different,
                 greatest(avg(held) / any_value(different), 0.0001) AS share
          FROM _duckanon_held AS labels
          JOIN (SELECT DISTINCT place, different FROM _duckanon_ranks) AS ranked ON ranked.place = labels.place
          GROUP BY labels.place)
), _duckanon_label_buckets AS (
    SELECT place, label_number, buckets,
           CASE WHEN buckets IS NULL OR held <= 0 THEN []
                WHEN ranks IS NULL THEN range(first_rank * buckets // different, 1 + last_rank * buckets // different)
                ELSE list_distinct(list_transform(ranks, lambda held_rank: held_rank * buckets // different))
                END AS within
    FROM _duckanon_held JOIN _duckanon_cuts USING (place)
)
SELECT every.place, every.value, every.number, NULL AS label_number,
       CASE WHEN every.is_exact THEN coalesce(exact.label_number, -2)
            ELSE coalesce(-3 - ranked.value_rank * cuts.buckets // cuts.different, -1) END AS part
FROM _duckanon_values AS every
LEFT JOIN _duckanon_exact AS exact ON exact.place = every.place AND exact.value IS NOT DISTINCT FROM every.value
LEFT JOIN _duckanon_ranks AS ranked ON ranked.place = every.place AND ranked.value IS NOT DISTINCT FROM every.value
LEFT JOIN _duckanon_cuts AS cuts ON cuts.place = every.place
UNION ALL
SELECT labels.place, NULL, NULL, labels.number,
       unnest(CASE WHEN labels.rule = 'everything' THEN [0]
                   WHEN labels.is_exact THEN [labels.number]
                   WHEN len(buckets.within) BETWEEN 1 AND 4
                        THEN list_transform(buckets.within, lambda bucket: -3 - bucket)
                   ELSE [-1] END)
FROM (SELECT DISTINCT place, number, rule, is_exact FROM query_table(rules)) AS labels
LEFT JOIN _duckanon_label_buckets AS buckets ON buckets.place = labels.place AND buckets.label_number = labels.number;
