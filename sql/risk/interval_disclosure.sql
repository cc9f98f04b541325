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
-- test: tests/risk/interval_disclosure.test
CREATE OR REPLACE MACRO anon.interval_disclosure(
    original, released, cols, width := 0.05, key := NULL, person := NULL
) AS TABLE
WITH _duckanon_names AS MATERIALIZED (
    SELECT list(column_name ORDER BY place ASC NULLS LAST) FILTER (is_original) AS names,
           bool_and(CASE WHEN anon._kind(column_type) = 'numeric' THEN true
                         ELSE error('anon.interval_disclosure: cols must name columns of numbers; got ' || column_name
                                    || ', which is ' || column_type || '.') END) AS are_numeric
    FROM (SELECT *, true AS is_original FROM anon._columns(original)
          UNION ALL
          SELECT *, false FROM anon._columns(released))
    WHERE anon._is_among(column_name, cols)
), _duckanon_originals AS NOT MATERIALIZED (
    SELECT COLUMNS(cols), COLUMNS([anon._or_none(key)]) AS _duckanon_key,
           CASE WHEN COLUMNS([anon._or_none(person)]) IS NOT NULL
                     THEN hash(COLUMNS([anon._or_none(person)])) END AS _duckanon_person,
           row_number() OVER () AS _duckanon_place
    FROM (SELECT *, NULL::UBIGINT AS _duckanon_none
          FROM query_table(
                   anon._checked_table('anon.interval_disclosure', 'original', original,
                       anon._checked_table('anon.interval_disclosure', 'released', released,
                           anon._checked_other('anon.interval_disclosure', 'key', key, cols,
                               anon._checked_person('anon.interval_disclosure', person, cols,
                                   CASE WHEN TRY_CAST(width AS DOUBLE) >= 0 AND isfinite(TRY_CAST(width AS DOUBLE))
                                             THEN anon._checked_apart('anon.interval_disclosure', cols,
                                                      ['_duckanon_none', '_duckanon_place'],
                                                      anon._checked_groups('anon.interval_disclosure', original, cols,
                                                                           'value'))
                                        ELSE error(anon._must_be('anon.interval_disclosure', 'width',
                                                                 'a number of at least 0', width)) END))))))
), _duckanon_images AS NOT MATERIALIZED (
    SELECT COLUMNS(cols), COLUMNS([anon._or_none(key)]) AS _duckanon_key, NULL::UBIGINT AS _duckanon_person,
           row_number() OVER () AS _duckanon_place
    FROM (SELECT *, NULL::UBIGINT AS _duckanon_none FROM query_table(released))
), _duckanon_both AS NOT MATERIALIZED (                 -- columns in the same order; a name with a space is nobody's
    SELECT true AS " is original", * FROM _duckanon_originals
    UNION ALL BY NAME
    SELECT false AS " is original", * FROM _duckanon_images
), _duckanon_rows AS MATERIALIZED (
    SELECT " is original" AS is_original, _duckanon_person AS member,
           CASE WHEN key IS NULL THEN _duckanon_place::UBIGINT
                WHEN _duckanon_key IS NOT NULL THEN hash(_duckanon_key) END AS place,
           [UNPACK(CAST(COLUMNS(cols) AS DOUBLE))] AS numbers
    FROM _duckanon_both
    WHERE (SELECT are_numeric FROM _duckanon_names)
), _duckanon_checked AS MATERIALIZED (
    SELECT anon._checked_rows('anon.interval_disclosure', originals,
               CASE WHEN key IS NULL AND originals <> images
                         THEN error('anon.interval_disclosure: released must have as many rows as original, '
                                    || CAST(originals AS VARCHAR) || ', where there is no key; got '
                                    || CAST(images AS VARCHAR) || '.')
                    WHEN key IS NOT NULL AND keys < originals + images
                         THEN error('anon.interval_disclosure: key must name a column that tells the rows of each '
                                    || 'table apart; got ' || CAST(key AS VARCHAR)
                                    || ', which holds a value twice, or NULL.')
                    ELSE true END) AS is_fine
    FROM (SELECT count(*) FILTER (is_original) AS originals, count(*) FILTER (NOT is_original) AS images,
                 count(DISTINCT CASE WHEN key IS NOT NULL AND is_original THEN place END)
                 + count(DISTINCT CASE WHEN key IS NOT NULL AND NOT is_original THEN place END) AS keys
          FROM _duckanon_rows)
), _duckanon_widths AS MATERIALIZED (
    SELECT list(half_width ORDER BY place ASC NULLS LAST) AS half_widths
    FROM (SELECT place, width::DOUBLE * coalesce(stddev_samp(number) FILTER (isfinite(number)), 0) AS half_width
          FROM (SELECT unnest(range(1, 1 + len(numbers))) AS place, unnest(numbers) AS number
                FROM _duckanon_rows WHERE NOT is_original)
          GROUP BY place)
), _duckanon_compared AS (
    SELECT own.member, list_transform(range(1, 1 + len(own.numbers)), lambda place:
               CASE WHEN image.numbers IS NULL THEN false
                    WHEN own.numbers[place] IS NULL OR image.numbers[place] IS NULL
                         THEN own.numbers[place] IS NULL AND image.numbers[place] IS NULL
                    ELSE abs(own.numbers[place] - image.numbers[place]) <= half_widths[place] END) AS insides
    FROM (FROM _duckanon_rows WHERE is_original) AS own
         LEFT JOIN (FROM _duckanon_rows WHERE NOT is_original) AS image USING (place), _duckanon_widths
), _duckanon_inside AS (                                -- once for all columns, once for each
    SELECT member, row_count, unnest(range(len(insides) + 1)) AS place,
           unnest([list_aggregate(insides, 'bool_and')] || insides) AS is_inside
    FROM (SELECT member, insides, count(*) AS row_count FROM _duckanon_compared, _duckanon_checked
          WHERE is_fine GROUP BY member, insides)
), _duckanon_counted AS (
    SELECT place, coalesce(sum(row_count) FILTER (is_inside), 0)::BIGINT AS rows_inside, sum(row_count) AS row_count,
           count(DISTINCT member) FILTER (is_inside) AS members_inside, count(DISTINCT member) AS members
    FROM _duckanon_inside GROUP BY place
)
SELECT names[place] AS column_name, CASE WHEN place > 0 THEN half_widths[place] END AS half_width, rows_inside,
       CASE WHEN person IS NULL THEN rows_inside ELSE members_inside END AS people_inside,
       people_inside / nullif(CASE WHEN person IS NULL THEN row_count ELSE members END, 0) AS fraction
FROM _duckanon_counted, _duckanon_names, _duckanon_widths
WHERE (SELECT is_fine FROM _duckanon_checked)
ORDER BY place ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.interval_disclosure IS
    'How many original numbers lie within narrow intervals around the released ones, in all columns and in each.';
