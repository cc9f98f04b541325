-- anon._table_source: the rows that an aggregate table is made of: its columns as labels (anon._cell_label), what a row
-- contributes, and whose row it is. A row contributes to its cells unless its measure is NULL or, where people are
-- counted, it is nobody's; a cell to which no row contributes is empty, and its people are those of the rows that
-- contribute.
--     measure           the column whose sums the table shows; NULL: it counts, and every row contributes 1
--     _duckanon_value   the contribution of the row; NULL: it contributes nothing
--     _duckanon_person  64 bits of the hash of its person, the same in every version of DuckDB; NULL where there is
--                       none, or without `person`
CREATE OR REPLACE MACRO anon._table_source(caller, tbl, by, measure, person) AS TABLE
WITH _duckanon_given AS (
    SELECT COLUMNS(list_concat("by", list_filter([measure, person], lambda named: named IS NOT NULL))),
           1 AS _duckanon_one, NULL::BIGINT AS _duckanon_nobody
    FROM (SELECT COLUMNS(anon._user_columns(*, caller, tbl)) FROM query_table(tbl))
), _duckanon_contributions AS (
    SELECT anon._cell_label(anon._equal_text(COLUMNS("by"))) AS '\0',
           CASE WHEN regexp_matches(typeof(COLUMNS([coalesce(measure, '_duckanon_one')])),
                                    '^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|BOOLEAN|DECIMAL.*)$')
                     THEN TRY_CAST(COLUMNS([coalesce(measure, '_duckanon_one')]) AS DOUBLE)
                ELSE error(caller || ': measure must name a column of numbers; got "' || measure || '".')
                END AS _duckanon_value,
           CASE WHEN COLUMNS([coalesce(person, '_duckanon_nobody')]) IS NOT NULL
                THEN CAST(md5_number(anon._equal_text(COLUMNS([coalesce(person, '_duckanon_nobody')])))
                          % 18446744073709551616 AS UBIGINT) END AS _duckanon_person
    FROM _duckanon_given
    WHERE anon._uncollated(caller, COLUMNS("by"))
)
SELECT * REPLACE (CASE WHEN measure IS NOT NULL OR person IS NULL OR _duckanon_person IS NOT NULL
                       THEN _duckanon_value END AS _duckanon_value)
FROM _duckanon_contributions;
