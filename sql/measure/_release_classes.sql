-- anon._release_classes: the classes of a release in blocks, such that a person can be in one class of a block only by the
-- columns in which a value may have several labels.
--     key     for each column the number of its label; 0 where it says everything, -1 where labels overlap
--     class   the number of the class in its block, from 0; numbers   those of its labels, for all columns
--     lists, rules  names of steps: anon._cell_lists of the release and anon._label_rules
CREATE OR REPLACE MACRO anon._release_classes(lists, rules) AS TABLE
WITH _duckanon_shown_rows AS MATERIALIZED (
    SELECT row_number() OVER () AS id, cells, size FROM query_table(lists)
), _duckanon_cells AS (
    SELECT id, size, unnest(range(1, 1 + len(cells))) AS place, unnest(cells) AS label FROM _duckanon_shown_rows
), _duckanon_numbers AS (
    SELECT DISTINCT place, label, number, CASE WHEN rule = 'everything' THEN 0 WHEN is_exact THEN number ELSE -1 END AS part
    FROM query_table(rules)
), _duckanon_keys AS (
    SELECT id, any_value(size) AS size, list(number ORDER BY c.place) AS numbers, list(part ORDER BY c.place) AS key
    FROM _duckanon_cells AS c JOIN _duckanon_numbers AS n ON c.place = n.place AND c.label IS NOT DISTINCT FROM n.label
    GROUP BY id
)
SELECT dense_rank() OVER (ORDER BY key) AS block, key, row_number() OVER (PARTITION BY key ORDER BY numbers) - 1 AS class,
       count(*) OVER (PARTITION BY key) AS block_classes, numbers, size::BIGINT AS size
FROM _duckanon_keys;
