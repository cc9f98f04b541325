-- anon.suppressed: the rows of the original that are missing in a generalized release, by the size of the class that
-- they had in the original. A release that loses only small classes says less about rare people, not about everybody.
--     class_size   size of their class in the original (rows, or different people with `person`); NULL in the last row,
--                  see below
--     classes      classes of this size that no released row contains, so that all their rows are suppressed
--     "rows"       their rows
--     people       people all of whose rows are certainly suppressed, each at the smallest of their classes; without
--                  `person` the rows
--     share        "rows" as a share of the original's rows
--     cols         columns that both tables have, exact in the original and generalized in the release [a list of
--                  names]
--     hierarchies  as in anon.generalization_loss
--     person       column of the original that identifies the person of a row; a row whose person is NULL counts as
--                  nobody. NULL: every row is a person [a name, or NULL]
-- A released label says which values it contains, not which rows: a class of the original is certainly suppressed where
-- no released row contains its values in all columns. Where one does, it may be that row or another one. The rows that
-- are missing beyond that, by the difference of the two row counts, cannot be assigned to a class. They are the last
-- row, with class_size and classes NULL, and people NULL with `person`; it is there only if there are such rows. The
-- sum of "rows" is the number of rows that the release has fewer. Released rows that were added to the original's would
-- hide suppressed ones.
-- promises: Between(0, 1, 'share'), InvariantUnder(*TABLE)
-- test: tests/measure/suppressed.test
CREATE OR REPLACE MACRO anon.suppressed(original, released, cols, hierarchies := NULL, person := NULL) AS TABLE
WITH _duckanon_source AS NOT MATERIALIZED (
    SELECT *, NULL::UBIGINT AS _duckanon_none
    FROM query_table(anon._checked_table('anon.suppressed', 'original', original,
             anon._checked_table('anon.suppressed', 'released', released,
                 anon._checked_person('anon.suppressed', person, cols,
                     anon._checked_apart('anon.suppressed', cols,
                         ['candidates', '_duckanon_none', '_duckanon_size', '_duckanon_rows', '_duckanon_person',
                          '_duckanon_value'], anon._checked('anon.suppressed', original, cols))))))
), _duckanon_subjects AS MATERIALIZED (
    SELECT COLUMNS(cols), anon._value_code(COLUMNS([anon._or_none(person)])) AS _duckanon_person
    FROM _duckanon_source
), _duckanon_held AS MATERIALIZED (
    FROM anon._with_candidates('anon.suppressed', '"_duckanon_subjects"', released, cols, hierarchies)
), _duckanon_members AS (                              -- equal rows have equal candidates: a class is held or it is not
    SELECT COLUMNS(cols), _duckanon_person, count(*) AS _duckanon_rows,
           any_value(_duckanon_candidates) AS _duckanon_value
    FROM _duckanon_held GROUP BY ALL
), _duckanon_sized AS MATERIALIZED (
    SELECT COLUMNS(cols), sum(_duckanon_rows)::BIGINT AS _duckanon_rows,
           CASE WHEN person IS NULL THEN sum(_duckanon_rows)::BIGINT ELSE count(_duckanon_person) END AS _duckanon_size,
           any_value(_duckanon_value) = 0 AS _duckanon_value, list(_duckanon_person) AS _duckanon_person
    FROM _duckanon_members GROUP BY ALL
), _duckanon_persons AS (
    SELECT min(class_size) AS class_size
    FROM (SELECT unnest(_duckanon_person) AS member, _duckanon_size AS class_size, _duckanon_value AS is_gone
          FROM _duckanon_sized WHERE person IS NOT NULL)
    WHERE member IS NOT NULL GROUP BY member HAVING bool_and(is_gone)
), _duckanon_counted AS MATERIALIZED (
    SELECT class_size, sum(classes)::BIGINT AS classes, sum(row_count)::BIGINT AS row_count,
           CASE WHEN person IS NULL THEN sum(row_count) ELSE sum(people) END::BIGINT AS people
    FROM (SELECT _duckanon_size AS class_size, count(*) AS classes, sum(_duckanon_rows) AS row_count, 0 AS people
          FROM _duckanon_sized WHERE _duckanon_value GROUP BY _duckanon_size
          UNION ALL
          SELECT class_size, 0, 0, count(*) FROM _duckanon_persons GROUP BY class_size)
    GROUP BY class_size
), _duckanon_totals AS (
    SELECT original_rows, original_rows - released_rows - gone_rows AS missing_rows
    FROM (SELECT count(*) AS original_rows FROM _duckanon_subjects),
         (SELECT count(*) AS released_rows FROM query_table(released)),
         (SELECT coalesce(sum(row_count), 0) AS gone_rows FROM _duckanon_counted)
)
SELECT class_size, classes, row_count AS "rows", people, row_count / original_rows AS share
FROM (SELECT class_size, classes, row_count, people FROM _duckanon_counted
      UNION ALL
      SELECT NULL, NULL, missing_rows::BIGINT, CASE WHEN person IS NULL THEN missing_rows END::BIGINT
      FROM _duckanon_totals WHERE missing_rows > 0), _duckanon_totals
ORDER BY class_size ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.suppressed IS
    'The suppressed rows and people of a generalized release, by the size of their class.';
