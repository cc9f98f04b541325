-- anon._unseen_labels: the different texts of a released column that are not values of the original's, lists as the
-- sets that they are; none where the released column is neither, all where the original's is not text. Types are known
-- when the query is bound: other columns are not read.
--     is_prefix   a value of the original begins like it
CREATE OR REPLACE MACRO anon._unseen_labels(original, released, place, column_name) AS TABLE
WITH _duckanon_known AS (
    SELECT DISTINCT CAST(known AS VARCHAR) AS value
    FROM (SELECT COLUMNS([column_name]) AS known FROM query_table(original)) WHERE anon._kind(typeof(known)) = 'text'
), _duckanon_unseen AS MATERIALIZED (
    SELECT label
    FROM (SELECT DISTINCT anon._cell_text(shown) AS label
          FROM (SELECT COLUMNS([column_name]) AS shown FROM query_table(released))
          WHERE anon._kind(typeof(shown)) = 'text' OR typeof(shown) = 'VARCHAR[]') AS labels
    ANTI JOIN _duckanon_known AS known ON labels.label IS NOT DISTINCT FROM known.value
), _duckanon_beginnings AS (
    SELECT DISTINCT left(value, prefix_length) AS label, true AS is_prefix
    FROM _duckanon_known, (SELECT DISTINCT length(label) AS prefix_length FROM _duckanon_unseen)
)
SELECT place AS place, unseen.label, coalesce(beginnings.is_prefix, false) AS is_prefix
FROM _duckanon_unseen AS unseen LEFT JOIN _duckanon_beginnings AS beginnings ON beginnings.label = unseen.label;
