-- anon._label_parts: a number for every value of the people and for every label of a release, such that a label may
-- hold a value only where their numbers are equal, or the label's is one of those that are to be tried with every
-- value:
--     0           the label says everything
--     its number  in columns in which no value has two labels; such a value gets the number of its label, -2 where it
--                 has none
--     -3, -4, ... in the others: the sorted values are cut into buckets, and a label is in those of its values, four at
--                 most: of the four columns whose labels are narrowest, with as many buckets that a label lies in about
--                 two
--     -1          labels that lie in more buckets, and those of all other columns: what they hold must be looked up
--     value, number          of a value, its place on the number line; label_number is NULL
--     lists, rules  names of steps: anon._cell_lists of the people, anon._label_rules
CREATE OR REPLACE MACRO anon._label_parts(lists, rules) AS TABLE
WITH _duckanon_columns AS MATERIALIZED (
    SELECT place, bool_and(is_exact) AS is_exact FROM query_table(rules) GROUP BY place
), _duckanon_values AS MATERIALIZED (
    SELECT place, is_exact, value, coalesce(TRY_CAST(value AS DOUBLE), anon._number_of(value, 'date')) AS number
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
    WINDOW place_order AS (PARTITION BY place ORDER BY number, is_value ROWS UNBOUNDED PRECEDING)
), _duckanon_exact AS (                                -- the one label of a value, where there is one
    SELECT place, value, label_number FROM _duckanon_begun_last WHERE is_value AND number <= held_to
    UNION ALL
    SELECT v.place, v.value, l.label_number
    FROM _duckanon_values AS v JOIN _duckanon_listed AS l
         ON v.place = l.place AND v.value IS NOT DISTINCT FROM l.value AND l.is_exact
), _duckanon_ranks AS MATERIALIZED (                   -- what has no number comes last
    SELECT place, value, number, row_number() OVER (PARTITION BY place ORDER BY number, value) - 1 AS value_rank,
           count(*) OVER (PARTITION BY place) AS different
    FROM _duckanon_values WHERE NOT is_exact
), _duckanon_reached AS (                              -- how many values are below an interval's start, how many up to its end
    SELECT place, label_number, min(below) AS first_rank, max(below) - 1 AS last_rank
    FROM (SELECT place, label_number, count(*) FILTER (label_number IS NULL) OVER (
                     PARTITION BY place ORDER BY number, side ROWS UNBOUNDED PRECEDING) AS below
          FROM (SELECT place, NULL AS label_number, number, 1 AS side FROM _duckanon_ranks WHERE number IS NOT NULL
                UNION ALL
                SELECT place, label_number, held_from, 0 FROM _duckanon_bounds WHERE NOT is_exact
                UNION ALL
                SELECT place, label_number, held_to, 2 FROM _duckanon_bounds WHERE NOT is_exact))
    WHERE label_number IS NOT NULL GROUP BY place, label_number
), _duckanon_held AS MATERIALIZED (
    SELECT place, label_number, first_rank, last_rank, NULL AS ranks, last_rank - first_rank + 1 AS held FROM _duckanon_reached
    UNION ALL
    SELECT l.place, l.label_number, NULL, NULL, list(value_rank), count(*)
    FROM _duckanon_listed AS l JOIN _duckanon_ranks AS r ON r.place = l.place AND r.value IS NOT DISTINCT FROM l.value
    GROUP BY l.place, l.label_number
), _duckanon_cuts AS MATERIALIZED (
    SELECT place, different,
           CASE WHEN share < 0.5 AND row_number() OVER (ORDER BY share, place) <= 4 THEN floor(1 / share)::BIGINT END AS buckets
    FROM (SELECT h.place, any_value(different) AS different, greatest(avg(held) / any_value(different), 0.0001) AS share
          FROM _duckanon_held AS h JOIN (SELECT DISTINCT place, different FROM _duckanon_ranks) AS r ON r.place = h.place
          GROUP BY h.place)
), _duckanon_label_buckets AS (
    SELECT place, label_number, buckets,
           CASE WHEN buckets IS NULL OR held <= 0 THEN []
                WHEN ranks IS NULL THEN range(first_rank * buckets // different, 1 + last_rank * buckets // different)
                ELSE list_distinct(list_transform(ranks, lambda one: one * buckets // different)) END AS within
    FROM _duckanon_held JOIN _duckanon_cuts USING (place)
)
SELECT v.place, v.value, v.number, NULL AS label_number,
       CASE WHEN v.is_exact THEN coalesce(e.label_number, -2)
            ELSE coalesce(-3 - r.value_rank * c.buckets // c.different, -1) END AS part
FROM _duckanon_values AS v
LEFT JOIN _duckanon_exact AS e ON e.place = v.place AND e.value IS NOT DISTINCT FROM v.value
LEFT JOIN _duckanon_ranks AS r ON r.place = v.place AND r.value IS NOT DISTINCT FROM v.value
LEFT JOIN _duckanon_cuts AS c ON c.place = v.place
UNION ALL
SELECT l.place, NULL, NULL, l.number,
       unnest(CASE WHEN l.rule = 'everything' THEN [0]
                   WHEN l.is_exact THEN [l.number]
                   WHEN len(b.within) BETWEEN 1 AND 4 THEN list_transform(b.within, lambda bucket: -3 - bucket)
                   ELSE [-1] END)
FROM (SELECT DISTINCT place, number, rule, is_exact FROM query_table(rules)) AS l
LEFT JOIN _duckanon_label_buckets AS b ON b.place = l.place AND b.label_number = l.number;
