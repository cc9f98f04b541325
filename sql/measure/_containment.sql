-- anon._containment: in which classes of a release each combination of values may be: one row per combination and block
-- (anon._release_classes), with the classes of the block that hold it as a bit string. A label's classes are a bit
-- string too: what holds a person in all columns is their conjunction, whatever the number of classes.
--     lists, rules, parts, classes  names of steps: anon._cell_lists of the people, whose other columns come back too,
--                                   anon._label_rules, anon._label_parts, anon._release_classes
CREATE OR REPLACE MACRO anon._containment(lists, rules, parts, classes) AS TABLE
WITH _duckanon_people AS MATERIALIZED (
    SELECT row_number() OVER () AS id, * FROM query_table(lists)
), _duckanon_values AS MATERIALIZED (
    SELECT place, value, number, part FROM query_table(parts) WHERE label_number IS NULL
), _duckanon_bounds AS MATERIALIZED (
    SELECT place, number AS label_number, held_from, held_to FROM query_table(rules)
    WHERE rule = 'interval' AND NOT is_exact
), _duckanon_listed AS MATERIALIZED (
    SELECT place, number AS label_number, value FROM query_table(rules) WHERE rule = 'listed' AND NOT is_exact
), _duckanon_keys AS (
    SELECT id, list(part ORDER BY known.place ASC NULLS LAST) AS key
    FROM (SELECT id, unnest(range(1, 1 + len(cells))) AS place, unnest(cells) AS value FROM _duckanon_people) AS known
    JOIN _duckanon_values AS every ON every.place = known.place AND every.value IS NOT DISTINCT FROM known.value
    GROUP BY id
), _duckanon_blocks AS MATERIALIZED (
    SELECT block, any_value(key) AS key,
           list_transform(any_value(key), lambda part: CASE WHEN part IN (0, -1) THEN part END) AS pattern,
           list_min(any_value(key)) < 0 AS is_mixed, any_value(block_classes) AS block_classes
    FROM query_table(classes) GROUP BY block
), _duckanon_tried AS (                                -- a key has 0 and -1 just where its pattern has them
    SELECT id, list_transform(range(1, 1 + len(keys.key)), lambda place:
                   coalesce(patterns.pattern[place], keys.key[place])) AS key
    FROM _duckanon_keys AS keys, (SELECT DISTINCT pattern FROM _duckanon_blocks) AS patterns
), _duckanon_met AS MATERIALIZED (                     -- the blocks of a combination: one at most for each pattern
    SELECT id, block, is_mixed, key, block_classes FROM _duckanon_tried JOIN _duckanon_blocks USING (key)
), _duckanon_bits AS MATERIALIZED (                    -- the classes of every label that may overlap with others
    SELECT block, place, label_number, anon._class_bits(block_classes, class) AS bits
    FROM (SELECT block, class, block_classes, unnest(range(1, 1 + len(key))) AS place, unnest(key) AS part,
                 unnest(numbers) AS label_number
          FROM query_table(classes))
    WHERE part < 0 GROUP BY block, place, label_number
), _duckanon_interval_bits AS MATERIALIZED (           -- joined here: the block must be what comes together first below
    SELECT block, place, held_from, held_to, bits FROM _duckanon_bits JOIN _duckanon_bounds USING (place, label_number)
), _duckanon_listed_bits AS MATERIALIZED (
    SELECT block, place, value, bits FROM _duckanon_bits JOIN _duckanon_listed USING (place, label_number)
), _duckanon_mixed AS NOT MATERIALIZED (               -- the values that must be looked up
    FROM (SELECT id, block, block_classes, unnest(range(1, 1 + len(cells))) AS place, unnest(cells) AS value,
                 unnest(key) AS part
          FROM _duckanon_met JOIN _duckanon_people USING (id) WHERE is_mixed)
    WHERE part < 0
), _duckanon_asked AS MATERIALIZED (                   -- each value once per block
    SELECT mixed.block, mixed.place, mixed.value, every.number
    FROM (SELECT DISTINCT block, place, value FROM _duckanon_mixed) AS mixed
    JOIN _duckanon_values AS every ON every.place = mixed.place AND every.value IS NOT DISTINCT FROM mixed.value
), _duckanon_answers AS (
    SELECT block, place, value, bit_or(bits) AS bits
    FROM (SELECT asked.block, asked.place, asked.value, labels.bits
          FROM _duckanon_asked AS asked
          JOIN _duckanon_interval_bits AS labels ON labels.block = asked.block AND labels.place = asked.place
          WHERE asked.number BETWEEN labels.held_from AND labels.held_to
          UNION ALL
          SELECT asked.block, asked.place, asked.value, labels.bits
          FROM _duckanon_asked AS asked
          JOIN _duckanon_listed_bits AS labels ON labels.block = asked.block AND labels.place = asked.place
                                              AND labels.value IS NOT DISTINCT FROM asked.value)
    GROUP BY block, place, value
), _duckanon_conjunctions AS (
    SELECT id, mixed.block, bit_and(coalesce(answers.bits, repeat('0', block_classes::INTEGER)::BIT)) AS bits
    FROM _duckanon_mixed AS mixed
    LEFT JOIN _duckanon_answers AS answers ON answers.block = mixed.block AND answers.place = mixed.place
                                          AND answers.value IS NOT DISTINCT FROM mixed.value
    GROUP BY id, mixed.block
)
SELECT *
FROM _duckanon_people LEFT JOIN (
    SELECT id, block, '1'::BIT AS bits FROM _duckanon_met WHERE NOT is_mixed
    UNION ALL
    FROM _duckanon_conjunctions WHERE bit_count(bits) > 0) USING (id);
