-- anon.direct_identifiers: the columns of a table that look like one of the eighteen identifiers that the HIPAA
-- safe-harbor rule, 45 CFR 164.514(b)(2)(i)(A) to (R), asks to remove: one row per column and category, by the column's
-- name and by the values of a sample. A hint, not a proof: an identifier inside free text, or in a column whose name
-- and values give no hint, is not found.
--     evidence            name, values, or name and values (a DATE or TIMESTAMP column counts as values even when it is
--                         empty)
--     match_fraction      share of the sampled values (not NULL, not blank) that have the category's shape; for
--                         age_over_89 the share of ages over 89, of which one is enough; for unique_code the share of
--                         different values; NULL where values give no hint or there were none
--     sample_rows         about this many rows are examined; smaller tables are read in full. The same table in the
--                         same order gives the same sample [a whole number, at least 1]
--     min_match_fraction  share of a column's values that must have the shape for the values alone to count [a number
--                         from 0 to 1]
-- Rows are sampled by the hash of their number, without favour for the beginning of the table. A value that several
-- columns' names could claim belongs to the one named: 555-0100 in fax is a fax number. Dates on the first of January
-- at midnight are taken for years. Binary columns are judged by their name only, nested ones by their name and the
-- names of their fields, however deep, boolean ones and fields never. (What stands in an ENUM's quotes and the words of
-- WITH TIME ZONE are no names.)
-- promises: Between(0, 1, 'match_fraction'), InvariantUnder('order', 'storage', 'columns')
-- test: tests/assess/direct_identifiers.test
CREATE OR REPLACE MACRO anon.direct_identifiers(tbl, sample_rows := 10000, min_match_fraction := 0.5) AS TABLE
WITH _duckanon_described AS (
    SELECT place, column_name, anon._plain_name(column_name) AS plain_name,
           CASE WHEN contains(column_type, 'STRUCT(') OR contains(column_type, 'UNION(')
                THEN list_transform(
                         regexp_extract_all(
                             regexp_replace(
                                 regexp_replace(column_type, 'ENUM\((''([^'']|'''')*''(, )?)+\)| WITH TIME ZONE', '',
                                                'g'),
                                 '("([^"]|"")*"|[\pL\pN_]+) BOOLEAN([,)])', 'flag BOOLEAN\3', 'g'),
                             '(?:STRUCT\(|UNION\(|, )("(?:[^"]|"")*"|[\pL\pN_]+) ', 1),
                         lambda field: anon._plain_name(field))
                ELSE [] END AS field_names,
           CASE WHEN regexp_full_match(column_type, 'U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|BIGNUM|VARINT') THEN 'integer'
                WHEN column_type IN ('INET', 'JSON') THEN 'text'
                WHEN anon._kind(column_type) = 'numeric' THEN 'other'
                ELSE anon._kind(column_type) END AS kind
    FROM anon._columns(anon._checked_whole('anon.direct_identifiers', 'sample_rows', sample_rows, 1,
                       anon._checked_fraction('anon.direct_identifiers', 'min_match_fraction', min_match_fraction,
                           anon._checked('anon.direct_identifiers', tbl, ['*']))))
), _duckanon_table_size AS (
    SELECT count(*) AS table_rows FROM query_table(tbl)
), _duckanon_sample AS (
    SELECT CASE WHEN regexp_matches(typeof(COLUMNS(_duckanon_source.*)),
                                    '^(BLOB|BIT|STRUCT|MAP|UNION|GEOMETRY|VARIANT)|]$')
                THEN CASE WHEN COLUMNS(_duckanon_source.*) IS NOT NULL THEN 'nested' END
                ELSE nullif(trim(left(CAST(COLUMNS(_duckanon_source.*) AS VARCHAR), 200)), '') END
    FROM query_table(tbl) AS _duckanon_source
    QUALIFY hash(row_number() OVER ())
            <= 18446744073709551615
               * least(1.0, sample_rows / greatest(1, (SELECT table_rows FROM _duckanon_table_size)))
), _duckanon_cells AS (
    SELECT unnest(range(1, 1 + len(row_values))) AS place, unnest(row_values) AS value_text
    FROM (SELECT [UNPACK(COLUMNS(_duckanon_sample.*))] AS row_values FROM _duckanon_sample)
), _duckanon_distinct_cells AS (
    SELECT place, value_text, count(*) AS value_count
    FROM _duckanon_cells WHERE value_text IS NOT NULL GROUP BY place, value_text
), _duckanon_shape_counts AS (
    SELECT place, value_shapes, sum(value_count) AS values_of_shape, count(*) AS distinct_of_shape
    FROM (SELECT place, anon._value_shapes(value_text) AS value_shapes, value_count FROM _duckanon_distinct_cells)
    GROUP BY place, value_shapes
), _duckanon_column_counts AS (
    SELECT place, CAST(sum(values_of_shape) AS BIGINT) AS sampled_values, sum(distinct_of_shape) AS distinct_values,
           coalesce(sum(values_of_shape) FILTER (list_contains(value_shapes, 'code')), 0) AS code_values
    FROM _duckanon_shape_counts
    GROUP BY place
), _duckanon_rules AS (
    SELECT unnest(list_transform(anon._identifier_rule_list(), lambda entry:
               {'rule': entry[1], 'category': entry[2], 'hipaa_item': entry[3], 'name_words': entry[4],
                'except_words': entry[5], 'shapes': entry[6], 'named_shapes': entry[7], 'action': entry[8]}),
           max_depth := 2)
), _duckanon_pairs AS (
    SELECT place, column_name, kind, rule, category, hipaa_item, shapes, named_shapes, action,
           coalesce(sampled_values, 0) AS sampled_values, code_values,
           distinct_values / nullif(sampled_values, 0) AS distinct_fraction,
           anon._has_word(plain_name, except_words) AS excepted,
           anon._named_like(plain_name, name_words, except_words)
           OR len(list_filter(field_names,
                              lambda field: anon._named_like(field, name_words, except_words))) > 0 AS name_hit
    FROM _duckanon_described CROSS JOIN _duckanon_rules LEFT JOIN _duckanon_column_counts USING (place)
    WHERE kind <> 'boolean'
), _duckanon_claims AS (
    SELECT place, flatten(list(named_shapes)) AS claimed_shapes
    FROM _duckanon_pairs WHERE name_hit GROUP BY place
), _duckanon_measured AS (
    SELECT _duckanon_pairs.place, rule,
           sum(values_of_shape) FILTER (list_has_any(value_shapes, shapes)) / any_value(sampled_values)
               AS alone_fraction,
           sum(values_of_shape) FILTER (list_has_any(value_shapes, named_shapes)) / any_value(sampled_values)
               AS named_fraction
    FROM _duckanon_pairs JOIN _duckanon_shape_counts ON _duckanon_pairs.place = _duckanon_shape_counts.place
    GROUP BY _duckanon_pairs.place, rule
), _duckanon_judged AS (
    SELECT _duckanon_pairs.*,
           CASE WHEN sampled_values = 0 OR (named_shapes = [] AND category <> 'unique_code') THEN NULL
                WHEN category = 'unique_code' THEN distinct_fraction
                ELSE coalesce(CASE WHEN name_hit THEN named_fraction ELSE alone_fraction END, 0) END AS fraction,
           claimed_shapes,
           CASE WHEN category = 'date' AND kind = 'date' THEN sampled_values = 0 OR fraction >= min_match_fraction
                -- values that differ in a sample may repeat in the table: duplicates in the sample are scaled up
                WHEN category = 'unique_code'
                     THEN sampled_values >= 10 AND (1 - fraction) * greatest(1, table_rows / sample_rows) <= 0.02
                          AND (kind = 'integer'
                               OR (kind = 'text' AND (name_hit OR code_values >= min_match_fraction * sampled_values)))
                WHEN name_hit THEN fraction >= CASE WHEN category = 'age_over_89' THEN 1e-12 ELSE min_match_fraction END
                ELSE NOT excepted AND fraction >= min_match_fraction
                     AND (kind = 'text' OR (kind = 'integer' AND category = 'account_number'))
                     AND NOT list_has_any(shapes, coalesce(claimed_shapes, []))
                     AND (category <> 'zip' OR claimed_shapes IS NULL) END AS value_hit
    FROM _duckanon_pairs
    LEFT JOIN _duckanon_measured USING (place, rule)
    LEFT JOIN _duckanon_claims USING (place)
    CROSS JOIN _duckanon_table_size
), _duckanon_found AS (
    SELECT *, count(*) OVER (PARTITION BY place) AS column_hits
    FROM _duckanon_judged WHERE name_hit OR value_hit
)
SELECT column_name, category, '(' || hipaa_item || ')' AS hipaa_item,
       CASE WHEN name_hit AND value_hit THEN 'name and values' WHEN name_hit THEN 'name' ELSE 'values' END AS evidence,
       CAST(fraction AS DOUBLE) AS match_fraction, sampled_values, action
FROM _duckanon_found
WHERE category <> 'unique_code' OR name_hit OR column_hits = 1
ORDER BY place ASC NULLS LAST, rule ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.direct_identifiers IS
    'Columns that look like one of the eighteen direct identifiers of the HIPAA safe-harbor rule.';
