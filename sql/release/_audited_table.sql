-- anon._audited_table: the query of anon.audit_table.
-- needs: python
CREATE OR REPLACE MACRO anon._audited_table(
    published, by, "value", people, k, p, hierarchies, linked, original, measure, person, overlapping
) AS TABLE
WITH _duckanon_chosen AS (
    SELECT COLUMNS(_anon_choose(*, 'anon.audit_table', published, {'by': anon._table_columns("by", linked),
                                                                   'value': "value", 'people': people}))
    FROM query_table(published)
), _duckanon_table AS (
    SELECT CAST(COLUMNS(anon._table_columns("by", linked)) AS VARCHAR),
           anon._shown_number('anon.audit_table', 'published', COLUMNS(["value"])) AS "value",
           anon._shown_number('anon.audit_table', 'published', COLUMNS([coalesce(people, "value")])) AS people
    FROM _duckanon_chosen
), _duckanon_source AS (
    SELECT COLUMNS(_anon_choose(*, 'anon.audit_table', coalesce(original, published),
                                {'by': anon._table_columns("by", linked), 'measure': measure, 'person': person}))
    FROM query_table(coalesce(original, published))
    WHERE original IS NOT NULL                           -- DuckDB may compute what no branch of a CASE asks for
), _duckanon_inner AS (
    FROM anon._table_rows('anon.audit_table', '"_duckanon_source"', anon._table_columns("by", linked), measure,
                          person, 2)
), _duckanon_shape AS (
    SELECT CAST(COLUMNS(anon._table_columns("by", linked)) AS VARCHAR), NULL::DOUBLE AS "value", NULL::VARCHAR AS fault,
           NULL::DOUBLE AS "lower", NULL::DOUBLE AS "upper"
    FROM _duckanon_chosen LIMIT 0
)
FROM anon._unpack(
    anon._run_audit_table(
        anon._tickets('"_duckanon_table"', '', NULL, true),
        CASE WHEN original IS NULL THEN NULL::BIGINT[]
             ELSE coalesce(anon._tickets('"_duckanon_inner"', '', NULL, original IS NOT NULL), []) END,
        {'by': "by", 'k': k, 'p': p, 'has_people': people IS NOT NULL, 'overlapping': overlapping,
         'hierarchies': anon._table_hierarchies('anon.audit_table', hierarchies), 'linked': linked, 'measure': measure,
         'person': person}),
    '"_duckanon_shape"', '');
