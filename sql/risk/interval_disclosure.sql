-- anon.interval_disclosure: how many original values can be read off a release of changed numbers: rows whose original
-- lies within a narrow interval around the released value, in all columns (`column_name` is NULL), and in each alone.
--     half_width     how far the interval reaches on either side: `width` times the standard deviation of the released
--                    column
--     rows_inside    rows whose original lies within
--     people_inside  people who have such a row; without `person` the rows
--     fraction       their share of the people, or of the rows
--     original       name of the table that the release was made from; its columns must be numbers [a text]
--     released       name of the released table. NULL is within an interval if it was released as NULL [a text]
--     width          half the width of the intervals, in standard deviations [a number, at least 0]
--     key            column of both tables that identifies a row: a row that was not released is not within. NULL: rows
--                    belong together by their position [a name, or NULL]
--     person         column of the original that identifies the person of a row; a row whose person is NULL counts as
--                    nobody. NULL: every row is a person [a name, or NULL]
-- sdcMicro has it as dRisk (Mateo-Sanz, Sebé and Domingo-Ferrer 2004). It is for releases that changed each row a
-- little: new records, as of anon.spectral_release, belong to nobody.
-- promises: Between(0, 1, 'fraction'), InvariantUnder('storage', 'columns', 'others')
-- test: tests/risk/interval_disclosure.test
CREATE OR REPLACE MACRO anon.interval_disclosure(
    original, released, cols, width := 0.05, key := NULL, person := NULL
) AS TABLE
WITH _duckanon_names AS (                               -- `nth` of cols, 0 for all of them together
    SELECT 0 AS place, NULL AS column_name, 0 AS nth
    UNION ALL
    SELECT place, column_name,
           list_position(list_transform(TRY_CAST(cols AS VARCHAR[]), lambda named: lower(named)), lower(column_name))
    FROM anon._columns(original) WHERE anon._is_among(column_name, cols)
), _duckanon_originals AS NOT MATERIALIZED (
    SELECT COLUMNS(cols), COLUMNS([anon._or_none(key)]) AS _duckanon_key,
           anon._value_code(COLUMNS([anon._or_none(person)])) AS _duckanon_person
    FROM (SELECT *, NULL::UBIGINT AS _duckanon_none
          FROM query_table(
                   anon._checked_table('anon.interval_disclosure', 'original', original,
                       anon._checked_table('anon.interval_disclosure', 'released', released,
                           anon._checked_other('anon.interval_disclosure', 'key', key, cols,
                               anon._checked_person('anon.interval_disclosure', person, cols,
                                   CASE WHEN TRY_CAST(width AS DOUBLE) >= 0 AND isfinite(TRY_CAST(width AS DOUBLE))
                                             THEN anon._checked_apart('anon.interval_disclosure', cols,
                                                      list_concat(
                                                          ['_duckanon_none', '_duckanon_original', '_duckanon_hash',
                                                           '_duckanon_all', '_duckanon_originals'],
                                                          list_transform(range(1, 1 + len(TRY_CAST(cols AS VARCHAR[]))),
                                                                         lambda place: '_duckanon_width_' || place)),
                                                      anon._checked_groups('anon.interval_disclosure', original, cols,
                                                                           'value'))
                                        ELSE error(anon._must_be('anon.interval_disclosure', 'width',
                                                                 'a number of at least 0', width)) END))))))
), _duckanon_releases AS NOT MATERIALIZED (
    SELECT COLUMNS(cols), COLUMNS([anon._or_none(key)]) AS _duckanon_key
    FROM (SELECT *, NULL::UBIGINT AS _duckanon_none FROM query_table(released))
    WHERE anon._are_numbers('anon.interval_disclosure', COLUMNS(cols))
), _duckanon_images AS MATERIALIZED (                   -- keys are compared as values of one type
    SELECT _duckanon_key FROM _duckanon_originals WHERE false
    UNION ALL BY NAME
    FROM _duckanon_releases
), _duckanon_widths AS MATERIALIZED (                   -- NaN is above infinity
    SELECT width::DOUBLE * coalesce(stddev_samp(CASE WHEN abs(CAST(COLUMNS(cols) AS DOUBLE)) < 'infinity'::DOUBLE
                                                          THEN CAST(COLUMNS(cols) AS DOUBLE) END), 0)
    FROM query_table(CASE WHEN key IS NULL THEN '_duckanon_releases' ELSE '_duckanon_images' END)
), _duckanon_own AS NOT MATERIALIZED (
    SELECT COLUMNS(cols), _duckanon_key, _duckanon_person
    FROM _duckanon_originals WHERE anon._are_numbers('anon.interval_disclosure', COLUMNS(cols))
), _duckanon_keyed AS NOT MATERIALIZED (
    SELECT *, anon._value_code(_duckanon_key) AS _duckanon_hash FROM _duckanon_images
), _duckanon_own_keyed AS MATERIALIZED (
    SELECT _own.*, anon._value_code(cast_to_type(_duckanon_key, _duckanon_alike)) AS _duckanon_hash
    FROM _duckanon_own AS _own
         LEFT JOIN (SELECT _duckanon_key AS _duckanon_alike FROM _duckanon_images LIMIT 0) ON true
), _duckanon_own_checked AS NOT MATERIALIZED (
    FROM _duckanon_own_keyed
    WHERE (SELECT CASE WHEN bool_or(rows_without_key > 0)
                            THEN error('anon.interval_disclosure: key must name a column that tells the rows of each '
                                       || 'table apart; got ' || CAST(key AS VARCHAR)
                                       || ', which holds a value twice, or NULL.')
                       ELSE true END
           FROM (SELECT count(*) - count(DISTINCT _duckanon_hash) AS rows_without_key FROM _duckanon_own_keyed
                 UNION ALL
                 SELECT count(*) - count(DISTINCT _duckanon_hash) FROM _duckanon_keyed))
), _duckanon_inside AS (       -- written out, since a list in each row takes twice the time. Where nothing but columns
                              -- is asked of two tables, rows at the same place are read off both at once. By the
                              -- HAVING, DuckDB takes the widths for fewer than the rows, and does not keep the rows
    FROM query(concat('SELECT *, ', anon._written_each(cols, '@', ' AND '), ' AS _duckanon_all FROM (SELECT ',
               anon._written_each(cols, 'anon._is_inside(CAST(_own.@ AS DOUBLE), CAST(_image.@ AS DOUBLE), _width.@, '
                   || CASE WHEN key IS NULL THEN 'true' ELSE '_image._duckanon_hash IS NOT NULL' END || ') AS @', ', '),
               ', _duckanon_person FROM (',
               CASE WHEN key IS NULL THEN '_duckanon_own AS _own POSITIONAL JOIN _duckanon_releases AS _image'
                    ELSE '_duckanon_own_checked AS _own LEFT JOIN _duckanon_keyed AS _image USING (_duckanon_hash)' END,
               '), (SELECT ', anon._written_each(cols, 'system.main.max(@) AS @', ', '),
               ' FROM _duckanon_widths HAVING system.main.count(*) > 0) AS _width)'))
), _duckanon_row_counts AS NOT MATERIALIZED (
    SELECT count_if(COLUMNS(cols))::BIGINT, count_if(_duckanon_all)::BIGINT AS _duckanon_all
    FROM _duckanon_inside
), _duckanon_people_counts AS NOT MATERIALIZED (
    SELECT count(DISTINCT CASE WHEN COLUMNS(cols) THEN _duckanon_person END),
           count(DISTINCT CASE WHEN _duckanon_all THEN _duckanon_person END) AS _duckanon_all,
           count(DISTINCT _duckanon_person) AS _duckanon_originals
    FROM _duckanon_inside
), _duckanon_rows AS MATERIALIZED (
    SELECT [_duckanon_all, UNPACK(COLUMNS(cols))] AS inside, _duckanon_originals AS everybody
    FROM _duckanon_row_counts, (SELECT count(*) AS _duckanon_originals FROM query_table(original)),
         (SELECT count(*) AS _duckanon_image_rows FROM query_table(released))
    WHERE anon._checked_rows('anon.interval_disclosure', _duckanon_originals,
              CASE WHEN key IS NULL AND _duckanon_originals <> _duckanon_image_rows
                        THEN error('anon.interval_disclosure: released must have as many rows as original, '
                                   || CAST(_duckanon_originals AS VARCHAR) || ', where there is no key; got '
                                   || CAST(_duckanon_image_rows AS VARCHAR) || '.')
                   ELSE true END)
), _duckanon_people AS (
    SELECT [_duckanon_all, UNPACK(COLUMNS(cols))] AS inside, _duckanon_originals AS everybody
    FROM _duckanon_people_counts
)
SELECT column_name, half_widths[nth] AS half_width, _rows.inside[1 + nth] AS rows_inside,
       _people.inside[1 + nth] AS people_inside, people_inside / nullif(_people.everybody, 0) AS fraction
FROM _duckanon_rows AS _rows,
     query_table(CASE WHEN person IS NULL THEN '_duckanon_rows' ELSE '_duckanon_people' END) AS _people,
     query(concat('SELECT [', anon._written_each(cols, '@', ', '), '] AS half_widths FROM _duckanon_widths')),
     _duckanon_names
ORDER BY place ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.interval_disclosure IS
    'How many original numbers lie within narrow intervals around the released ones, in all columns and in each.';
