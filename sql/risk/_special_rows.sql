-- anon._special_rows: the body of anon.special_uniques. Sets of columns are walked in Python, over integer codes: one
-- GROUP BY a set takes ten times as long. The result is joined to the rows by the hash of the columns, in three narrow
-- joins, one after the other, which take half the memory of a wide one: the optimizer would join the results first, if
-- the later conditions did not name a column of the table. A table that has a column called like one of these results
-- is refused: nobody could tell the two apart.
-- needs: python
CREATE OR REPLACE MACRO anon._special_rows(
    tbl, cols, max_size, weighting, sampling_fraction, nulls, person
) AS TABLE
WITH _duckanon_chosen AS NOT MATERIALIZED (
    SELECT COLUMNS(_anon_choose(*, 'anon.special_uniques', tbl, {'cols': cols, 'person': person}))
    FROM query_table(tbl)
), _duckanon_cells AS NOT MATERIALIZED (
    SELECT anon._value_code(COLUMNS(cols)), hash(UNPACK(anon._value_code(COLUMNS(cols)))) AS _duckanon_class,
           _duckanon_size, _duckanon_rows, _duckanon_anyone
    FROM anon._classes('anon.special_uniques', '"_duckanon_chosen"', cols, 'value', person := person)
), _duckanon_found AS MATERIALIZED (
    SELECT unnest(anon._run_special_uniques(
                      anon._tickets('"_duckanon_cells"', '', NULL, true),
                      {'max_size': max_size, 'weighting': weighting, 'sampling_fraction': sampling_fraction,
                       'nulls': nulls, 'person': person}), max_depth := 2)
    WHERE (SELECT are_apart FROM anon._names_apart('anon.special_uniques', tbl,
                                                   ['unique_sets', 'sets_by_size', 'suda_score', 'dis_score',
                                                    'contributions']))
), _duckanon_names AS (
    SELECT list(column_name ORDER BY place ASC NULLS LAST) AS names
    FROM anon._columns('"_duckanon_chosen"') WHERE anon._is_among(column_name, cols)
), _duckanon_shares AS NOT MATERIALIZED (                       -- the empty side of the join brings the columns' names
    SELECT _duckanon_found.contributions[list_position(_duckanon_names.names, alias(COLUMNS(_duckanon_source.*)))],
           _duckanon_found.alike AS _duckanon_alike, _duckanon_found.same_sizes AS _duckanon_same_sizes
    FROM _duckanon_found LEFT JOIN (SELECT COLUMNS(cols) FROM _duckanon_chosen LIMIT 0) AS _duckanon_source ON true,
         _duckanon_names
), _duckanon_patterns AS NOT MATERIALIZED (
    SELECT _duckanon_alike, _duckanon_same_sizes,
           struct_pack(*COLUMNS(lambda named: NOT starts_with(named, '_duckanon_'))) AS _duckanon_shares
    FROM _duckanon_shares
), _duckanon_members AS NOT MATERIALIZED (
    SELECT alike AS _duckanon_alike, unnest(classes) AS _duckanon_class FROM _duckanon_found
), _duckanon_sizes AS NOT MATERIALIZED (
    SELECT alike AS _duckanon_alike, sets_by_size AS _duckanon_sizes, suda_score AS _duckanon_score,
           dis_score AS _duckanon_dis
    FROM _duckanon_found WHERE sets_by_size IS NOT NULL
), _duckanon_keyed AS NOT MATERIALIZED (
    SELECT *, hash(UNPACK(anon._value_code(COLUMNS(cols)))) AS _duckanon_class FROM query_table(tbl)
)
SELECT _duckanon_keyed.* EXCLUDE (_duckanon_class), list_aggregate(_duckanon_sizes, 'sum')::BIGINT AS unique_sets,
       _duckanon_sizes::BIGINT[] AS sets_by_size, _duckanon_score AS suda_score, _duckanon_dis AS dis_score,
       _duckanon_shares AS contributions
FROM _duckanon_keyed
     JOIN _duckanon_members ON _duckanon_keyed._duckanon_class = _duckanon_members._duckanon_class
     JOIN _duckanon_patterns
          ON _duckanon_patterns._duckanon_alike = CASE WHEN _duckanon_keyed._duckanon_class IS NOT NULL
                                                       THEN _duckanon_members._duckanon_alike END
     JOIN _duckanon_sizes
          ON _duckanon_sizes._duckanon_alike = CASE WHEN _duckanon_keyed._duckanon_class IS NOT NULL
                                                    THEN _duckanon_patterns._duckanon_same_sizes END;
