-- anon.special_uniques: every row that is alone in some of the columns, with how special it is (SUDA): its minimal
-- sample uniques are the sets of columns in which nobody else has its values, while in every smaller set somebody has.
-- The fewer columns they need, and the more of them there are, the sooner somebody notices the row, and the likelier it
-- is alone in the population too.
--     unique_sets    minimal sets of the row
--     sets_by_size   the same by their size: of one column, of two ...
--     suda_score     sum over the sets of what their size weighs
--     dis_score      the probability that whoever matches the row with somebody in the population is right (DIS-SUDA)
--     contributions  for each column the share of the score that comes from sets with it; they do not add up to 1
--     max_size       size of the largest sets that are looked for; NULL: all columns
--     weighting      'factorial': (M - s)! for a set of s of M columns; 'share': (2^(M-s) - 1) s! (M-s)! / M!, so that
--                    a set of all columns weighs 0
--     sampling_fraction   the share of the population that the table is a sample of
--     nulls          'drop': a NULL matches nothing, and belongs to no set, as nobody is looked up by what is not
--                    there; 'value': NULL is a value
--     person         name of the column that says whose row it is: a row is alone where nobody else has its values. A
--                    row whose person is NULL hides nobody. NULL: every row is a person
-- Sets of columns are walked in Python, over integer codes: one GROUP BY a set takes ten times as long. The result is
-- joined to the rows by the hash of the columns. A table that has a column called like one of these results is refused:
-- nobody could tell the two apart.
-- (Elliot, Manning and Ford 2002; Manning, Haglin and Keane 2008; Elliot, Manning, Mayes, Gurd and Bane 2005)
-- test: tests/risk/special_uniques.test
-- needs: python
CREATE OR REPLACE MACRO anon.special_uniques(
    tbl, cols, max_size := NULL, weighting := 'factorial', sampling_fraction := 0.01, nulls := 'drop', person := NULL
) AS TABLE
WITH _duckanon_call AS MATERIALIZED (
    FROM anon._call()
), _duckanon_cells AS NOT MATERIALIZED (
    FROM anon._unique_cells('anon.special_uniques', tbl, cols, max_size, weighting, sampling_fraction, nulls, person)
), _duckanon_found AS MATERIALIZED (
    SELECT unnest(anon._run_special_uniques(
                      (SELECT list(ticket) FILTER (ticket IS NOT NULL)
                       FROM (SELECT _anon_park(record, call) AS ticket
                             FROM (SELECT struct_pack(*COLUMNS(*)) AS record FROM _duckanon_cells), _duckanon_call)),
                      {'max_size': max_size::BIGINT, 'weighting': weighting,
                       'sampling_fraction': sampling_fraction::DOUBLE, 'nulls': nulls, 'person': person::VARCHAR}),
                  max_depth := 2)
    WHERE (SELECT are_apart FROM anon._names_apart('anon.special_uniques', tbl,
                                                   ['unique_sets', 'sets_by_size', 'suda_score', 'dis_score',
                                                    'contributions']))
), _duckanon_names AS (
    SELECT list(column_name ORDER BY place ASC NULLS LAST) AS names
    FROM anon._columns(tbl) WHERE anon._is_among(column_name, cols)
), _duckanon_shares AS NOT MATERIALIZED (                       -- the empty side of the join brings the columns' names
    SELECT _duckanon_found.contributions[list_position(_duckanon_names.names, alias(COLUMNS(_duckanon_source.*)))],
           _duckanon_found.class AS _duckanon_class, _duckanon_found.sets_by_size AS _duckanon_sizes,
           _duckanon_found.suda_score AS _duckanon_score, _duckanon_found.dis_score AS _duckanon_dis
    FROM _duckanon_found LEFT JOIN (SELECT COLUMNS(cols) FROM query_table(tbl) LIMIT 0) AS _duckanon_source ON true,
         _duckanon_names
), _duckanon_scored AS NOT MATERIALIZED (
    SELECT _duckanon_class, _duckanon_sizes, _duckanon_score, _duckanon_dis,
           struct_pack(*COLUMNS(lambda named: NOT starts_with(named, '_duckanon_'))) AS _duckanon_shares
    FROM _duckanon_shares
), _duckanon_keyed AS NOT MATERIALIZED (
    SELECT *, hash(*COLUMNS(cols)) AS _duckanon_class FROM query_table(anon._checked('anon.special_uniques', tbl, cols))
)
SELECT _duckanon_keyed.* EXCLUDE (_duckanon_class), list_aggregate(_duckanon_sizes, 'sum')::BIGINT AS unique_sets,
       _duckanon_sizes AS sets_by_size, _duckanon_score AS suda_score, _duckanon_dis AS dis_score,
       _duckanon_shares AS contributions
FROM _duckanon_keyed JOIN _duckanon_scored USING (_duckanon_class);
COMMENT ON MACRO TABLE anon.special_uniques IS
    'Every row that some columns make unique, with its SUDA score, DIS score and what each column contributes.';
