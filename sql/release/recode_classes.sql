-- anon.recode_classes: the classes of a recoded table (anon.recode), the largest first: number of rows, labels, and the
-- information loss of the labels, from 0 (exact values) to 1 (unspecified), on average over `cols`.
--     released     name of the recoded table [a text]
--     cols         recoded columns [a list of names]
--     hierarchies  the hierarchies that `anon.recode` used: the loss of an ancestor follows from its hierarchy alone
--                  [MAP {'education': 'education_tree'}, or NULL]
-- The loss follows from the released table: of an interval it is the share of the range from the smallest to the
-- largest end that any label names (an open interval reaches to that), of a set the other values among those that any
-- label names, of an ancestor the other values below it. (The original's range and values must not be disclosed to
-- whoever has the release.) '*' is everything and 'other' the values that no label names: of a value that is written so
-- anon.recode makes '{"*"}'.
-- promises: Between(0, 1, 'loss'), InvariantUnder('order', 'storage', 'others')
-- test: tests/release/recode_classes.test
CREATE OR REPLACE MACRO anon.recode_classes(released, cols, hierarchies := NULL) AS TABLE
WITH _duckanon_classes AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY count(*) DESC NULLS LAST, cells ASC NULLS LAST) AS class, count(*) AS "rows",
           any_value(labels) AS labels, cells
    FROM (SELECT struct_pack(*COLUMNS(cols)) AS labels,
                 [UNPACK({'name': lower(alias(COLUMNS(cols))), 'label': anon._cell_text(COLUMNS(cols))})] AS cells
          FROM query_table(anon._checked('anon.recode_classes', released, cols)))
    GROUP BY cells
), _duckanon_cells AS MATERIALIZED (
    SELECT class, unnest(cells).name AS name, unnest(cells).label AS label FROM _duckanon_classes
), _duckanon_labels AS MATERIALIZED (
    SELECT name, label, anon._label_members(label) AS members,
           CASE WHEN label[1] = '[' AND label[-1] IN (']', ')') -- the ends on the number line, NULL for other labels
                     THEN list_transform(string_split(label[2:-2], ', '), lambda text: anon._any_number(text))
                WHEN label[1] = '<' AND beyond IS NOT NULL THEN [NULL, beyond]
                WHEN starts_with(label, '>=') AND beyond IS NOT NULL THEN [beyond, NULL]
                WHEN itself IS NOT NULL THEN [itself, itself] END AS ends
    FROM (SELECT DISTINCT name, label, anon._any_number(ltrim(label, '<>=')) AS beyond,
                 anon._any_number(label) AS itself
          FROM _duckanon_cells)
), _duckanon_spans AS (
    SELECT name, min(coalesce(ends[1], ends[2])) AS lowest, max(coalesce(ends[2], ends[1])) AS highest
    FROM _duckanon_labels WHERE label <> '*' GROUP BY name
    HAVING bool_and(ends IS NOT NULL)                  -- else texts, of which some look like numbers or intervals
), _duckanon_values AS (
    SELECT name, count(DISTINCT member) AS count
    FROM (SELECT name, coalesce(unnest(members), chr(30)) AS member FROM _duckanon_labels WHERE label <> '*')
    GROUP BY name
), _duckanon_trees AS MATERIALIZED (
    FROM anon._hierarchies('anon.recode_classes', hierarchies) WHERE leaf IS NOT NULL
), _duckanon_leaves AS (
    SELECT column_name AS name, count(DISTINCT leaf) AS count FROM _duckanon_trees GROUP BY column_name
), _duckanon_below AS (
    SELECT column_name AS name, label, count(DISTINCT leaf) AS count FROM _duckanon_trees GROUP BY column_name, label
), _duckanon_losses AS MATERIALIZED (
    SELECT labels.name, labels.label,
           CASE WHEN labels.label IS NULL THEN 0
                WHEN labels.label = '*' THEN 1
                WHEN below.count IS NOT NULL THEN (below.count - 1) / greatest(leaves.count - 1, 1)
                WHEN ends IS NOT NULL AND highest > lowest
                     THEN (coalesce(ends[2], highest) - coalesce(ends[1], lowest)) / (highest - lowest)
                ELSE (len(members) - 1) / greatest(values.count - 1, 1) END AS loss
    FROM _duckanon_labels AS labels
         LEFT JOIN _duckanon_spans AS spans ON spans.name = labels.name
         LEFT JOIN _duckanon_values AS values ON values.name = labels.name
         LEFT JOIN _duckanon_leaves AS leaves ON leaves.name = labels.name
         LEFT JOIN _duckanon_below AS below ON below.name = labels.name AND below.label = labels.label
), _duckanon_of_classes AS (
    SELECT cells.class, avg(losses.loss) AS loss
    FROM _duckanon_cells AS cells JOIN _duckanon_losses AS losses
         ON losses.name = cells.name AND losses.label IS NOT DISTINCT FROM cells.label
    GROUP BY cells.class
)
SELECT class, "rows", labels, loss
FROM _duckanon_classes JOIN _duckanon_of_classes USING (class)
ORDER BY class ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.recode_classes IS
    'The classes of a recoded table: number of rows, labels, and information loss.';
