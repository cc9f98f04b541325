-- anon.hierarchy_level: the lowest level of a hierarchy at which the values of a column have at most `max_distinct`
-- different labels, as a table to join with: one row per value (Probabilistic Anonymity, Section 4.2).
--     value, label, level, "rows"  the value, its label, the level (0 is the value itself), the rows that have the
--                                 value
--     covered                     whether the hierarchy has the value; others get the label *, as do empty cells
--     col                         column whose values are labelled [a name]
--     hierarchy                   name of a table: first column the value, then its label of level 1, of level 2, ...
--                                 [a text]
--     max_distinct                number of labels, at most [a whole number, at least 1]
-- NULL stays NULL, and counts as a label.
-- promises: EqualsDefinition(), InvariantUnder(*TABLE)
-- test: tests/generalize/hierarchy_level.test
CREATE OR REPLACE MACRO anon.hierarchy_level(tbl, col, hierarchy, max_distinct) AS TABLE
WITH _duckanon_values AS MATERIALIZED (
    SELECT COLUMNS([col]) AS value, count(*) AS size
    FROM query_table(anon._checked_name('anon.hierarchy_level', 'col', 'one column', col,
             anon._checked_table('anon.hierarchy_level', 'hierarchy', hierarchy,
                 anon._checked_whole('anon.hierarchy_level', 'max_distinct', max_distinct, 1,
                     anon._checked('anon.hierarchy_level', tbl, ['*'])))))
    WHERE anon._uncollated('anon.hierarchy_level', COLUMNS([col]))
    GROUP BY ALL
), _duckanon_tree AS MATERIALIZED (
    SELECT DISTINCT labels[1] AS leaf, labels
    FROM anon._hierarchy('anon.hierarchy_level', col, hierarchy) WHERE labels[1] IS NOT NULL
), _duckanon_paths AS MATERIALIZED (                   -- each value and its label of every level
    SELECT value, size, leaf IS NOT NULL OR value IS NULL AS covered, level,
           CASE WHEN value IS NULL THEN NULL
                WHEN level = 0 THEN coalesce(anon._value_label(leaf), '*')
                ELSE coalesce(labels[level + 1], '*') END AS label
    FROM _duckanon_values LEFT JOIN _duckanon_tree ON leaf = CAST(value AS VARCHAR),
         (SELECT unnest(range(max(len(labels)))) AS level FROM _duckanon_tree)
), _duckanon_levels AS (
    SELECT level, count(DISTINCT label) + max((label IS NULL)::INTEGER) AS distinct_labels
    FROM _duckanon_paths GROUP BY level
), _duckanon_chosen AS (
    SELECT coalesce(min(level) FILTER (distinct_labels <= max_distinct),
                    CASE WHEN count(*) > 0
                         THEN error('anon.hierarchy_level: max_distinct must be at least '
                                    || arg_max(distinct_labels, level) || ', the labels of the top level; got '
                                    || CAST(max_distinct AS VARCHAR) || '.') END) AS level
    FROM _duckanon_levels
)
SELECT value, label, level, size AS "rows", covered
FROM _duckanon_paths JOIN _duckanon_chosen USING (level)
ORDER BY label ASC NULLS LAST, value ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.hierarchy_level IS
    'The lowest level of a hierarchy with at most max_distinct labels for a column, as a mapping from value to label.';
