-- anon._special_columns: the body of anon.special_unique_columns.
-- needs: python
CREATE OR REPLACE MACRO anon._special_columns(tbl, cols, max_size, weighting, nulls, person) AS TABLE
WITH _duckanon_chosen AS NOT MATERIALIZED (
    SELECT COLUMNS(_anon_choose(*, 'anon.special_unique_columns', tbl, {'cols': cols, 'person': person}))
    FROM query_table(tbl)
), _duckanon_cells AS NOT MATERIALIZED (
    SELECT anon._value_code(COLUMNS(cols)), hash(UNPACK(anon._value_code(COLUMNS(cols)))) AS _duckanon_class,
           _duckanon_size, _duckanon_rows, _duckanon_anyone
    FROM anon._classes('anon.special_unique_columns', '"_duckanon_chosen"', cols, 'value', person := person)
), _duckanon_found AS MATERIALIZED (
    SELECT unnest(anon._run_special_unique_columns(
                      anon._tickets('"_duckanon_cells"', '', NULL, true),
                      {'max_size': max_size, 'weighting': weighting, 'nulls': nulls, 'person': person}), max_depth := 2)
), _duckanon_names AS (
    SELECT list(column_name ORDER BY place ASC NULLS LAST) AS names
    FROM anon._columns('"_duckanon_chosen"') WHERE anon._is_among(column_name, cols)
)
SELECT names[place] AS column_name, unique_sets, "rows", contribution
FROM _duckanon_found, _duckanon_names
ORDER BY contribution DESC NULLS LAST, place ASC NULLS LAST;
