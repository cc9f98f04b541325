-- anon._protected_table: the query of anon.protect_table.
-- needs: python
CREATE OR REPLACE MACRO anon._protected_table(
    tbl, by, measure, k, p, dominance, person, hierarchies, zeros, linked, previous, method, max_suppressed_fraction,
    "key"
) AS TABLE
WITH _duckanon_chosen AS (
    SELECT COLUMNS(_anon_choose(*, 'anon.protect_table', tbl, {'by': anon._table_columns("by", linked),
                                                               'measure': measure, 'person': person}))
    FROM query_table(tbl)
), _duckanon_inner AS (
    FROM anon._table_rows('anon.protect_table', '"_duckanon_chosen"', anon._table_columns("by", linked), measure,
                          person, greatest(2, coalesce(TRY_CAST(dominance AS DOUBLE[])[1]::BIGINT, 2)))
), _duckanon_nothing AS (
    SELECT COLUMNS(anon._table_columns("by", linked)), NULL::BIGINT AS people, NULL::DOUBLE AS "value"
    FROM _duckanon_chosen LIMIT 0
), _duckanon_named AS (
    SELECT COLUMNS(_anon_choose(*, 'anon.protect_table', coalesce(previous, 'previous'),
                                {'by': anon._table_columns("by", linked), 'value': ['people', 'value']}))
    FROM query_table(coalesce(previous, '"_duckanon_nothing"'))
), _duckanon_before AS (
    SELECT CAST(COLUMNS(anon._table_columns("by", linked)) AS VARCHAR),
           anon._shown_number('anon.protect_table', 'previous', people) AS people,
           anon._shown_number('anon.protect_table', 'previous', "value") AS "value"
    FROM _duckanon_named
), _duckanon_shape AS (
    SELECT CAST(COLUMNS(anon._table_columns("by", linked)) AS VARCHAR), NULL::BIGINT AS people, NULL::DOUBLE AS "value",
           NULL::BIGINT AS max_deviation, NULL::BOOLEAN AS published, NULL::BOOLEAN AS interval_checked
    FROM _duckanon_chosen LIMIT 0
)
FROM anon._unpack(
    anon._run_protect_table(
        anon._tickets('"_duckanon_inner"', '', NULL, true),
        CASE WHEN previous IS NULL THEN NULL::BIGINT[]
             ELSE coalesce(anon._tickets('"_duckanon_before"', '', NULL, previous IS NOT NULL), []) END,
        {'by': "by", 'measure': measure, 'k': k, 'p': p, 'dominance': dominance, 'person': person,
         'hierarchies': anon._table_hierarchies('anon.protect_table', hierarchies), 'zeros': zeros, 'linked': linked,
         'method': method,
         'max_suppressed_fraction': max_suppressed_fraction, 'key': "key"}),
    '"_duckanon_shape"', '');
