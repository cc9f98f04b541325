-- anon.special_unique_columns: what each column contributes to the special uniques of a table, over all rows.
--     unique_sets   minimal sample uniques with the column: sets of columns that single a row out, while no smaller
--                   set within does
--     rows          rows with such a set
--     contribution  the share of the sum of all SUDA scores that comes from sets with the column; the columns do not
--                   add up to 1
-- The options are those of anon.special_uniques.
-- test: tests/risk/special_unique_columns.test
-- needs: python
CREATE OR REPLACE MACRO anon.special_unique_columns(
    tbl, cols, max_size := NULL, weighting := 'factorial', nulls := 'drop', person := NULL
) AS TABLE
WITH _duckanon_call AS MATERIALIZED (
    FROM anon._call()
), _duckanon_cells AS NOT MATERIALIZED (
    FROM anon._unique_cells('anon.special_unique_columns', tbl, cols, max_size, weighting, 0.5, nulls, person)
), _duckanon_found AS MATERIALIZED (
    SELECT unnest(anon._run_special_unique_columns(
                      (SELECT list(ticket) FILTER (ticket IS NOT NULL)
                       FROM (SELECT _anon_park(record, call) AS ticket
                             FROM (SELECT struct_pack(*COLUMNS(*)) AS record FROM _duckanon_cells), _duckanon_call)),
                      {'max_size': max_size::BIGINT, 'weighting': weighting, 'nulls': nulls,
                       'person': person::VARCHAR}),
                  max_depth := 2)
), _duckanon_names AS (
    SELECT list(column_name ORDER BY place ASC NULLS LAST) AS names
    FROM anon._columns(tbl) WHERE anon._is_among(column_name, cols)
)
SELECT names[place] AS column_name, unique_sets, "rows", contribution
FROM _duckanon_found, _duckanon_names
ORDER BY contribution DESC NULLS LAST, place ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.special_unique_columns IS
    'What each column contributes to the rows that few columns make unique (SUDA).';
