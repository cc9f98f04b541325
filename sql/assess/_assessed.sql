-- anon._assessed: the body of anon.assess. Up to 40,000 rows are all looked at. Of more, roles and dependencies come
-- from some 20,000 rows that are picked by the hash of the columns that may be keys: all rows of a person and of a
-- household are in the sample, or none. Of more than 250,000 rows, distinct_values and unique_fraction are estimates
-- from values picked by their hash (Gibbons 2001).
-- needs: python
CREATE OR REPLACE MACRO anon._assessed(tbl, person) AS TABLE
WITH _duckanon_names AS MATERIALIZED (
    SELECT place, column_name, anon._kind(column_type) AS kind,
           coalesce(lower(column_name) = lower(person), false) AS is_person
    FROM anon._columns(tbl)
), _duckanon_of_rows AS NOT MATERIALIZED (
    SELECT COLUMNS(anon._user_columns(*, 'anon.assess', tbl)), row_number() OVER () AS _duckanon_row,
           NULL::UBIGINT AS _duckanon_person
    FROM query_table(tbl)
), _duckanon_of_people AS NOT MATERIALIZED (
    SELECT * EXCLUDE (_duckanon_named), row_number() OVER () AS _duckanon_row,
           anon._value_code(_duckanon_named) AS _duckanon_person
    FROM (SELECT *, COLUMNS(_anon_choose(*, 'anon.assess', tbl, {'person': person})) AS _duckanon_named
          FROM query_table(tbl))
), _duckanon_coded AS NOT MATERIALIZED (     -- with the hashes of the values, NULL for NULL
    SELECT *, [UNPACK(anon._value_code(COLUMNS(* EXCLUDE (_duckanon_row, _duckanon_person))))]
                  AS _duckanon_codes
    FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_of_rows' ELSE '_duckanon_of_people' END)
), _duckanon_counts AS MATERIALIZED (
    SELECT count(*) AS row_count, count(*) > 40000 AS is_large, count(*) > 250000 AS is_estimated,
           [UNPACK(CAST(approx_count_distinct(COLUMNS(*)) AS BIGINT))] AS estimates,
           [UNPACK(CAST(count(COLUMNS(*)) AS BIGINT))] AS known
    FROM query_table(tbl)
), _duckanon_keys AS MATERIALIZED (          -- columns that may be keys of people or households: those that repeat
    SELECT coalesce(list(place), []) AS keys,
           greatest(1, (SELECT row_count // 20000 FROM _duckanon_counts) * count(*)) AS share
    FROM (SELECT place FROM _duckanon_names, _duckanon_counts
          WHERE is_large AND (is_person OR (kind IN ('numeric', 'text')
                               AND estimates[place] BETWEEN row_count / 300 AND 0.9 * row_count))
          QUALIFY row_number() OVER (ORDER BY is_person DESC NULLS LAST, estimates[place] DESC NULLS LAST) <= 5)
), _duckanon_cells AS NOT MATERIALIZED (
    SELECT CASE WHEN person IS NULL THEN _duckanon_row::UBIGINT ELSE _duckanon_person END AS member,
           unnest(range(1, 1 + len(_duckanon_codes))) AS place, unnest(_duckanon_codes) AS code
    FROM _duckanon_coded
), _duckanon_classes AS (                    -- of very many rows one value of sixteen
    SELECT place, code, weight, count(*) AS size, min(member) AS lowest, max(member) AS highest
    FROM (SELECT *, 1 AS weight FROM _duckanon_cells, (FROM _duckanon_counts WHERE NOT is_estimated)
          UNION ALL BY NAME
          SELECT *, 16 AS weight FROM (FROM _duckanon_cells WHERE code % 16 = 0),
                                      (FROM _duckanon_counts WHERE is_estimated))
    GROUP BY place, code, weight
), _duckanon_nobody AS (
    SELECT NULL::UBIGINT AS _duckanon_person
), _duckanon_people AS (
    SELECT CASE WHEN person IS NULL THEN (SELECT row_count FROM _duckanon_counts)
                ELSE count(DISTINCT _duckanon_person) END AS people
    FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_nobody' ELSE '_duckanon_of_people' END)
), _duckanon_profile AS (
    SELECT place, count(code) AS counted, sum(size) FILTER (code IS NOT NULL) AS counted_rows,
           least(1, any_value(weight) * CASE WHEN person IS NULL THEN count(*) FILTER (size = 1)
                                             ELSE count(DISTINCT lowest) FILTER (lowest = highest) END
                    / nullif(any_value(people), 0)) AS unique_fraction
    FROM _duckanon_classes, _duckanon_people GROUP BY place
), _duckanon_categories AS (
    SELECT column_name, list(category) AS categories,
           list(category) FILTER (category <> 'unique_code' OR evidence <> 'values') AS told
    FROM anon.direct_identifiers(tbl) GROUP BY column_name
), _duckanon_facts AS MATERIALIZED (
    SELECT place, column_name, kind, known[place] AS known_rows,
           CASE WHEN NOT is_estimated THEN coalesce(counted, 0)
                WHEN counted >= 1000 THEN CAST(known[place] * counted / counted_rows AS BIGINT)
                ELSE least(estimates[place], known[place]) END AS distinct_values,
           coalesce(unique_fraction, 0)::DOUBLE AS unique_fraction,
           coalesce(categories, []) AS categories, coalesce(told, []) AS told
    FROM _duckanon_names CROSS JOIN _duckanon_counts
    LEFT JOIN _duckanon_profile USING (place) LEFT JOIN _duckanon_categories USING (column_name)
), _duckanon_sample AS MATERIALIZED (
    SELECT _duckanon_coded.*,
           list_transform(_duckanon_keys.keys, lambda _duckanon_nth:
                          coalesce(_duckanon_codes[_duckanon_nth] % _duckanon_keys.share = 0, false)) AS _duckanon_whole
    FROM _duckanon_coded, _duckanon_keys, _duckanon_counts
    WHERE NOT _duckanon_counts.is_large
          OR (len(_duckanon_keys.keys) = 0 AND hash(_duckanon_codes) % (_duckanon_counts.row_count // 20000) = 0)
          OR len(list_filter(_duckanon_keys.keys, lambda _duckanon_nth:
                             _duckanon_codes[_duckanon_nth] % _duckanon_keys.share = 0)) > 0
    LIMIT 60000                              -- a value that a third of the rows have may have been picked
), _duckanon_texts AS (                      -- every type has texts
    SELECT _duckanon_row AS "row", _duckanon_whole AS whole,
           [UNPACK(CAST(COLUMNS(* EXCLUDE (_duckanon_row, _duckanon_person, _duckanon_codes, _duckanon_whole))
                        AS VARCHAR))] AS texts
    FROM _duckanon_sample
), _duckanon_options AS (
    SELECT {'row_count': any_value(row_count), 'keys': any_value(keys), 'person': person,
            'names': list(column_name ORDER BY place ASC NULLS LAST),
            'kinds': list(kind ORDER BY place ASC NULLS LAST),
            'distinct': list(distinct_values ORDER BY place ASC NULLS LAST),
            'known_rows': list(known_rows ORDER BY place ASC NULLS LAST),
            'unique_fractions': list(unique_fraction ORDER BY place ASC NULLS LAST),
            'categories': list(told ORDER BY place ASC NULLS LAST)} AS options
    FROM _duckanon_facts, _duckanon_counts, _duckanon_keys
), _duckanon_found AS (
    SELECT unnest(anon._run_assess(anon._tickets('_duckanon_texts', '', NULL, true),
                                   (SELECT options FROM _duckanon_options)), max_depth := 2)
)
SELECT column_name, kind, distinct_values, unique_fraction,
       nullif(anon._joined(categories, ', '), '') AS identifier_category,
       determines, determined_by, unique_growth, role, why
FROM _duckanon_found JOIN _duckanon_facts USING (place)
ORDER BY place ASC NULLS LAST;
