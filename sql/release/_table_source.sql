-- anon._table_source: the rows that an aggregate table is made of: its columns as text, what a row contributes, and
-- whose row it is.
--     measure           the column whose sums the table shows; NULL: it counts, and every row contributes 1
--     _duckanon_value   the contribution of the row; NULL: it contributes nothing
--     _duckanon_person  64 bits of the hash of its person, the same in every version of DuckDB; NULL where there is
--                       none, or without `person`
CREATE OR REPLACE MACRO anon._table_source(caller, tbl, by, measure, person) AS TABLE
WITH _duckanon_given AS (
    SELECT COLUMNS(anon._user_columns(*, caller, tbl)), 1 AS _duckanon_one, NULL::BIGINT AS _duckanon_nobody
    FROM query_table(tbl)
)
SELECT CAST(COLUMNS("by") AS VARCHAR),
       CAST(COLUMNS([coalesce(measure, '_duckanon_one')]) AS DOUBLE) AS _duckanon_value,
       CASE WHEN COLUMNS([coalesce(person, '_duckanon_nobody')]) IS NOT NULL
            THEN CAST(md5_number(CAST(COLUMNS([coalesce(person, '_duckanon_nobody')]) AS VARCHAR))
                      % 18446744073709551616 AS UBIGINT) END AS _duckanon_person
FROM _duckanon_given
WHERE anon._uncollated(caller, COLUMNS("by"))
      AND CASE WHEN CAST(COLUMNS("by") AS VARCHAR) = 'Total'
                    THEN error(caller || ': by must not name a column with the value ''Total'', which is the label of '
                               || 'margins; got "' || alias(COLUMNS("by")) || '": rename the value first.')
               ELSE true END
      AND CASE WHEN regexp_matches(typeof(COLUMNS([coalesce(measure, '_duckanon_one')])),
                                   '^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|U?INTEGER|DOUBLE|FLOAT|BOOLEAN|DECIMAL.*)$')
                    THEN true
               ELSE error(caller || ': measure must name a column of numbers; got "' || measure || '".') END;
