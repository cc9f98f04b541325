-- anon._release_linked: the rows of anon.release_linked. The tables stand below each other: what a table does not have
-- is NULL in its rows.
-- needs: python
CREATE OR REPLACE MACRO anon._release_linked(
    tables, person, cols, k, known, class, people, hierarchies, ladder, keep, narrowing, counts, sensitive,
    max_confidence, l, t, max_suppressed_fraction, seed
) AS TABLE
WITH _duckanon_columns AS MATERIALIZED (
    FROM query(list_transform([list_concat(tables, CASE WHEN people IS NULL THEN [] ELSE [people] END)], lambda those:
        anon._table_calls('_linked_columns', those, list_transform(those, lambda one: ''), ' UNION ALL '))[1])
), _duckanon_rows AS NOT MATERIALIZED (
    SELECT COLUMNS(_anon_choose(*, 'anon.release_linked',
                                anon._joined(list_concat(tables, CASE WHEN people IS NULL THEN [] ELSE [people] END),
                                             ' or '),
                                {'result': 'table_name', 'cols': cols, 'person': person, 'class': class, 'keep': keep,
                                 'sensitive': sensitive}))
    FROM query(list_transform([list_concat(tables, CASE WHEN people IS NULL THEN [] ELSE [people] END)], lambda those:
        anon._table_calls('_linked_rows', those, list_transform(those, lambda one:
            ', ' || anon._quoted_list(list_concat(list_concat(list_concat([person], cols), coalesce(class, [])),
                                                  list_concat(coalesce(keep, []), CASE WHEN sensitive IS NULL THEN []
                                                                                   ELSE [sensitive] END)))),
            ' UNION ALL BY NAME '))[1])
    WHERE anon._checked_linked_columns('anon.release_linked', tables, person, class, people,
                                       '_duckanon_columns')
), _duckanon_kept AS (
    SELECT table_name,
           struct_extract({'number': NULL::BIGINT, 'own': COLUMNS([person])},
                          CASE WHEN anon._is_among(person, coalesce(keep, [])) THEN 'own' ELSE 'number' END),
           COLUMNS(lambda name: name = '_duckanon_none' OR anon._is_among(name, coalesce(class, []))
                   OR (anon._is_among(name, coalesce(keep, [])) AND lower(name) <> lower(person))
                   OR (name = 'row_count' AND counts IS NOT NULL))
    FROM (SELECT *, NULL::VARCHAR AS _duckanon_none, NULL::VARCHAR AS row_count
          FROM anon._release_shape('"_duckanon_rows"', ''))
)
SELECT table_name, COLUMNS([person]),
       COLUMNS(lambda name: name <> 'table_name' AND lower(name) <> lower(person))
FROM anon._unpack_recoded(
    anon._run_release_linked(anon._tickets('"_duckanon_rows"', '', 0, true, caller := 'anon.release_linked'),
        {'table_names': tables,
         'columns_of_tables': (SELECT list({'table_name': table_name, 'column_name': column_name})
                               FROM _duckanon_columns), 'person': person, 'cols': cols, 'k': k,
         'known': list_transform(tables, lambda one:
             CASE WHEN starts_with(typeof(known), 'MAP(') THEN TRY_CAST(known AS MAP(VARCHAR, BIGINT))[one]
                  ELSE TRY_CAST(known AS BIGINT) END),
         'class_columns': class, 'people': people,
         'hierarchies': (SELECT list({'column_name': column_name, 'leaf': leaf, 'level': level, 'label': label})
                         FROM anon._hierarchies('anon.release_linked', hierarchies)),
         'ladder': ladder, 'keep': keep, 'narrowing': narrowing,
         'counts': counts, 'sensitive': sensitive, 'max_confidence': max_confidence, 'l': l, 't': t,
         'max_suppressed_fraction': max_suppressed_fraction, 'seed': seed}),
    '"_duckanon_rows"', cols, '"_duckanon_kept"', NULL, 'text');
