-- anon._containment: in which classes of a release each combination of values may be: one row per combination and block
-- (anon._release_classes), with the classes of the block that hold it as a bit string. A label's classes are a bit string
-- too: what holds a person in all columns is their conjunction, whatever the number of classes.
--     lists, rules, classes  names of steps: anon._cell_lists of the people, whose other columns come back too,
--                            anon._label_rules, anon._release_classes
CREATE OR REPLACE MACRO anon._containment(lists, rules, classes) AS TABLE
WITH _duckanon_people AS MATERIALIZED (
    SELECT row_number() OVER () AS id, * FROM query_table(lists)
), _duckanon_values AS MATERIALIZED (
    SELECT place, value, coalesce(TRY_CAST(value AS DOUBLE), anon._number_of(value, 'date')) AS number
    FROM (SELECT DISTINCT place, value
          FROM (SELECT unnest(range(1, 1 + len(cells))) AS place, unnest(cells) AS value FROM _duckanon_people))
), _duckanon_bounds AS MATERIALIZED (
    SELECT place, number AS label_number, held_from, held_to, is_exact FROM query_table(rules) WHERE rule = 'interval'
), _duckanon_listed AS MATERIALIZED (
    SELECT place, number AS label_number, value, is_exact FROM query_table(rules) WHERE rule = 'listed'
), _duckanon_begun_last AS (                           -- the last interval that begins at or before a value
    SELECT place, value, number, is_value, last_value(label_number IGNORE NULLS) OVER place_order AS label_number,
           last_value(held_to IGNORE NULLS) OVER place_order AS held_to
    FROM (SELECT place, value, number, true AS is_value, NULL AS label_number, NULL AS held_to
          FROM _duckanon_values WHERE number IS NOT NULL
          UNION ALL
          SELECT place, NULL, held_from, false, label_number, held_to FROM _duckanon_bounds WHERE is_exact)
    WINDOW place_order AS (PARTITION BY place ORDER BY number, is_value ROWS UNBOUNDED PRECEDING)
), _duckanon_exact AS (                                -- the one label of a value, where there is one
    SELECT place, value, label_number FROM _duckanon_begun_last WHERE is_value AND number <= held_to
    UNION ALL
    SELECT v.place, v.value, l.label_number
    FROM _duckanon_values AS v JOIN _duckanon_listed AS l
         ON v.place = l.place AND v.value IS NOT DISTINCT FROM l.value AND l.is_exact
), _duckanon_parts AS (
    SELECT v.place, v.value, CASE WHEN c.is_exact THEN coalesce(e.label_number, -2) ELSE -1 END AS part
    FROM _duckanon_values AS v JOIN (SELECT place, bool_and(is_exact) AS is_exact FROM query_table(rules) GROUP BY place) AS c
         ON c.place = v.place
    LEFT JOIN _duckanon_exact AS e ON e.place = v.place AND e.value IS NOT DISTINCT FROM v.value
), _duckanon_keys AS (
    SELECT id, list(part ORDER BY c.place) AS key
    FROM (SELECT id, unnest(range(1, 1 + len(cells))) AS place, unnest(cells) AS value FROM _duckanon_people) AS c
    JOIN _duckanon_parts AS p ON p.place = c.place AND p.value IS NOT DISTINCT FROM c.value
    GROUP BY id
), _duckanon_blocks AS MATERIALIZED (
    SELECT block, any_value(key) AS key, list_transform(any_value(key), lambda part: part = 0) AS pattern,
           list_position(any_value(key), -1) IS NOT NULL AS is_mixed, any_value(block_classes) AS block_classes
    FROM query_table(classes) GROUP BY block
), _duckanon_tried AS (                                -- 0 is in a key only where the pattern has it: it need not be joined on
    SELECT id, list_transform(k.key, lambda part, place: CASE WHEN p.pattern[place] THEN 0 ELSE part END) AS key
    FROM _duckanon_keys AS k, (SELECT DISTINCT pattern FROM _duckanon_blocks) AS p
), _duckanon_met AS MATERIALIZED (                     -- the blocks of a combination: one at most for each pattern of '*'
    SELECT id, block, is_mixed, key, block_classes FROM _duckanon_tried JOIN _duckanon_blocks USING (key)
), _duckanon_bits AS MATERIALIZED (                    -- the classes of every label that may overlap with others
    SELECT block, place, label_number,
           bit_or(set_bit(repeat('0', block_classes::INTEGER)::BIT, class::INTEGER, 1)) AS bits
    FROM (SELECT block, class, block_classes, unnest(range(1, 1 + len(key))) AS place, unnest(key) AS part, unnest(numbers) AS label_number
          FROM query_table(classes))
    WHERE part = -1 GROUP BY block, place, label_number
), _duckanon_asked AS MATERIALIZED (                   -- each value once per block
    SELECT DISTINCT block, place, block_classes, value
    FROM (SELECT block, block_classes, unnest(range(1, 1 + len(cells))) AS place, unnest(cells) AS value, unnest(key) AS part
          FROM _duckanon_met JOIN _duckanon_people USING (id) WHERE is_mixed)
    WHERE part = -1
), _duckanon_answers AS (
    SELECT block, place, value, bit_or(bits) AS bits
    FROM (SELECT a.block, a.place, a.value, b.bits
          FROM _duckanon_asked AS a JOIN _duckanon_values AS v ON v.place = a.place AND v.value = a.value
          JOIN _duckanon_bounds AS o ON o.place = a.place AND v.number >= o.held_from AND v.number <= o.held_to
          JOIN _duckanon_bits AS b ON b.block = a.block AND b.place = a.place AND b.label_number = o.label_number
          UNION ALL
          SELECT a.block, a.place, a.value, b.bits
          FROM _duckanon_asked AS a
          JOIN _duckanon_listed AS l ON l.place = a.place AND l.value IS NOT DISTINCT FROM a.value
          JOIN _duckanon_bits AS b ON b.block = a.block AND b.place = a.place AND b.label_number = l.label_number)
    GROUP BY block, place, value
), _duckanon_conjunctions AS (
    SELECT id, c.block, bit_and(coalesce(a.bits, repeat('0', block_classes::INTEGER)::BIT)) AS bits
    FROM (SELECT id, block, block_classes, unnest(range(1, 1 + len(cells))) AS place, unnest(cells) AS value, unnest(key) AS part
          FROM _duckanon_met JOIN _duckanon_people USING (id) WHERE is_mixed) AS c
    LEFT JOIN _duckanon_answers AS a ON a.block = c.block AND a.place = c.place AND a.value IS NOT DISTINCT FROM c.value
    WHERE part = -1 GROUP BY id, c.block
)
SELECT *
FROM _duckanon_people LEFT JOIN (
    SELECT id, block, '1'::BIT AS bits FROM _duckanon_met WHERE NOT is_mixed
    UNION ALL
    FROM _duckanon_conjunctions WHERE bit_count(bits) > 0) USING (id);
