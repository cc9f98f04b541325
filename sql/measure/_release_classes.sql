-- anon._release_classes: the classes of a release in blocks, such that only the classes of a few blocks can hold a
-- person.
--     key          for each column a number of its label in anon._label_parts; a class whose labels have several is in
--                  as many blocks
--     class        the number of the class in its block, from 0
--     numbers      those of its labels, for all columns
--     shown_class  the number of the class in the release
--     lists, rules, parts  names of steps: anon._cell_lists of the release, anon._label_rules and anon._label_parts
CREATE OR REPLACE MACRO anon._release_classes(lists, rules, parts) AS TABLE
WITH _duckanon_shown_rows AS MATERIALIZED (
    SELECT row_number() OVER () AS id, cells, size FROM query_table(lists)
), _duckanon_cells AS (
    SELECT id, size, unnest(range(1, 1 + len(cells))) AS place, unnest(cells) AS label FROM _duckanon_shown_rows
), _duckanon_numbers AS (
    SELECT labels.place, labels.label, labels.number, choices.alternatives
    FROM (SELECT DISTINCT place, label, number FROM query_table(rules)) AS labels
    JOIN (SELECT place, label_number, list([part]) AS alternatives
          FROM query_table(parts) WHERE label_number IS NOT NULL GROUP BY ALL) AS choices
         ON choices.place = labels.place AND choices.label_number = labels.number
), _duckanon_alternatives AS (
    SELECT id, any_value(size) AS size, list(number ORDER BY cells.place ASC NULLS LAST) AS numbers,
           list(alternatives ORDER BY cells.place ASC NULLS LAST) AS alternatives
    FROM _duckanon_cells AS cells
    JOIN _duckanon_numbers AS labels ON cells.place = labels.place AND cells.label IS NOT DISTINCT FROM labels.label
    GROUP BY id
), _duckanon_keys AS (                                 -- where all labels have one number, there is one key
    SELECT id, size, numbers,
           unnest(CASE WHEN len(flatten(alternatives)) = len(alternatives) THEN [flatten(flatten(alternatives))]
                       ELSE list_reduce(alternatives, lambda keys, choices: flatten(list_transform(keys, lambda key:
                                list_transform(choices, lambda part: list_concat(key, part))))) END) AS key
    FROM _duckanon_alternatives
)
SELECT dense_rank() OVER (ORDER BY key ASC NULLS LAST) AS block, key,
       row_number() OVER (PARTITION BY key ORDER BY numbers ASC NULLS LAST) - 1 AS class,
       count(*) OVER (PARTITION BY key) AS block_classes, numbers, size::BIGINT AS size, id AS shown_class
FROM _duckanon_keys;
