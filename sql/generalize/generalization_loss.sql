-- anon.generalization_loss: the information loss of a generalized release: one row per column, and a last one without a
-- name for the whole table.
--     labels                      different values of the released column
--     ncp                         normalized certainty penalty, the mean over the original's rows of the share of the
--                                 column's range that the released value covers: 0 exact, 1 unspecified; a suppressed
--                                 row counts 1. Of the whole table: the mean over the columns, the global certainty
--                                 penalty (GCP)
--     rank_difference, error_ratio  of numbers and dates: how far values are from the median and the mean of their
--                                 bucket (anon._bucket_costs); NULL where labels overlap
--     classes, smallest_class, suppressed_rows  of the whole table
--     discernibility              sum of squared class sizes, where each suppressed row counts the size of the table
--     average_class_over_k        rows / classes / k
--     original                    name of the table, view or CTE that the release was made from [a text]
--     released                    name of the release: it has the columns `cols` of the original, generalized, and
--                                 possibly fewer rows [a text]
--     cols                        columns to compare [a list of names]
--     k                           class size that was asked for; NULL: the smallest class [a whole number, at least 1,
--                                 or NULL]
--     hierarchies                 hierarchies of columns: tables with the value first, then its label of level 1, of
--                                 level 2, ... [a MAP such as MAP {'education': 'education_hierarchy'}, or NULL]
-- Labels may be single values, '[20, 30)', '<25', '>=80', '90+', '2024-Q1', '2020s', '021**', '{a, b}', '*'
-- (everything), 'other' (values of no other label) and those of `hierarchies`. NULL is a value; where the original has
-- none it is unspecified, like '*'.
-- Refusals do not depend on the columns that are selected.
-- promises: Between(0, 1, 'ncp'), InvariantUnder(*TABLE)
-- test: tests/generalize/generalization_loss.test
CREATE OR REPLACE MACRO anon.generalization_loss(original, released, cols, k := NULL, hierarchies := NULL) AS TABLE
WITH _duckanon_original AS MATERIALIZED (
    SELECT COLUMNS(cols)
    FROM query_table(anon._checked_table('anon.generalization_loss', 'original', original,
             anon._checked_whole('anon.generalization_loss', 'k', coalesce(k, 1), 1,
                 anon._checked('anon.generalization_loss', original, cols))))
    WHERE anon._uncollated('anon.generalization_loss', COLUMNS(cols))
), _duckanon_released AS MATERIALIZED (                          -- intervals and lists are the labels that they are
    SELECT struct_extract({'label': anon._cell_text(COLUMNS(cols)), 'as_it_is': COLUMNS(cols)},
                          CASE WHEN regexp_matches(anon._type_of(COLUMNS(cols)), '^STRUCT\(lo |^VARCHAR\[\]$')
                                    THEN 'label' ELSE 'as_it_is' END) AS '\0'
    FROM query_table(anon._checked_table('anon.generalization_loss', 'released', released, released))
    WHERE anon._uncollated('anon.generalization_loss', COLUMNS(cols))
), _duckanon_names AS MATERIALIZED (
    SELECT place AS table_place, column_name,
           list_position(list_transform(cols, lambda named: lower(named)), lower(column_name)) AS place
    FROM anon._columns('_duckanon_original')
), _duckanon_shown AS MATERIALIZED (
    SELECT place, value AS label, size FROM anon._value_counts('_duckanon_released', cols)
), _duckanon_values AS MATERIALIZED (
    FROM anon._read_values('_duckanon_original', '_duckanon_shown', cols)
), _duckanon_labels AS MATERIALIZED (
    SELECT place, reading AS label, size FROM anon._read_labels('_duckanon_shown', '_duckanon_values')
), _duckanon_spans AS MATERIALIZED (
    FROM anon._column_spans('_duckanon_values')
), _duckanon_leaves AS (
    FROM anon._hierarchy_leaves('anon.generalization_loss', hierarchies, '_duckanon_names')
), _duckanon_covered AS MATERIALIZED (
    FROM anon._label_leaves('_duckanon_values', '_duckanon_spans', '_duckanon_labels', '_duckanon_leaves')
), _duckanon_losses AS MATERIALIZED (
    FROM anon._label_losses('anon.generalization_loss', '_duckanon_spans', '_duckanon_labels', '_duckanon_covered',
                            '_duckanon_names')
), _duckanon_classes AS (
    SELECT count(*) AS classes, min(_duckanon_size) AS smallest_class,
           coalesce(sum(_duckanon_size), 0)::BIGINT AS released_rows,
           coalesce(sum(_duckanon_size::HUGEINT * _duckanon_size), 0) AS squares
    FROM anon._classes('anon.generalization_loss', '"_duckanon_released"', cols, 'value')
), _duckanon_sizes AS MATERIALIZED (
    SELECT *, anon._checked_rows('anon.generalization_loss', original_rows,
                  CASE WHEN released_rows > original_rows
                            THEN error('anon.generalization_loss: released must not have more rows than original; got '
                                       || released_rows || ' and ' || original_rows || '.')
                       ELSE original_rows - released_rows END) AS suppressed_rows
    FROM _duckanon_classes, (SELECT count(*) AS original_rows FROM _duckanon_original)
), _duckanon_penalties AS MATERIALIZED (
    SELECT table_place, column_name, count(losses.size) AS labels,
           (coalesce(sum(losses.size * losses.ncp), 0) + any_value(suppressed_rows)) / any_value(original_rows) AS ncp,
           any_value(costs.rank_difference) AS rank_difference, any_value(costs.error_ratio) AS error_ratio
    FROM _duckanon_sizes, _duckanon_names AS names LEFT JOIN _duckanon_losses AS losses ON names.place = losses.place
    LEFT JOIN anon._bucket_costs('_duckanon_values', '_duckanon_spans', '_duckanon_losses') AS costs
           ON names.place = costs.place
    GROUP BY table_place, column_name
)
SELECT * EXCLUDE (table_place)
FROM (SELECT table_place, column_name, labels, ncp, rank_difference, error_ratio, NULL::BIGINT AS classes,
             NULL::BIGINT AS smallest_class, NULL::HUGEINT AS discernibility, NULL::DOUBLE AS average_class_over_k,
             NULL::BIGINT AS suppressed_rows
      FROM _duckanon_penalties
      UNION ALL
      SELECT NULL, NULL, NULL, (SELECT avg(ncp) FROM _duckanon_penalties), NULL, NULL, classes, smallest_class,
             squares + suppressed_rows::HUGEINT * original_rows,
             released_rows / nullif(classes, 0) / coalesce(k, smallest_class),
             suppressed_rows
      FROM _duckanon_sizes)
-- Looked at whatever columns are asked for: refusals do not depend on them.
WHERE (SELECT suppressed_rows FROM _duckanon_sizes) >= 0
      AND (SELECT coalesce(max(ncp), 0) FROM _duckanon_losses) >= 0
ORDER BY table_place ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.generalization_loss IS
    'Information loss of a generalized release: certainty penalty, rank difference, squared error, discernibility.';
