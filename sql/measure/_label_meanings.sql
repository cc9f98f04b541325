-- anon._label_meanings: what the labels of a release hold, as one list of structs for Python: column_name, label, rule,
-- held_from, held_to, value (anon._label_rules; of a listed value held_from is its place on the number line). It only
-- reads columns that were released as labels: text where the original has numbers, dates or booleans, or text that the
-- original does not have and that looks like labels: '*', 'other', '{a, b}', '021**', a label of a hierarchy, NULL, or
-- nothing but prefixes of values. Values, and numbers as text, are left out: they stand for themselves.
CREATE OR REPLACE MACRO anon._label_meanings(caller, original, released, cols, hierarchies) AS (
    WITH _duckanon_unseen AS MATERIALIZED (
        FROM query(
            CASE WHEN anon._checked(caller, original, cols) IS NOT NULL
                 THEN anon._joined(list_transform(range(1, 1 + len(cols)), lambda place:
                          'FROM anon._unseen_labels(' || anon._quoted(CAST(original AS VARCHAR)) || ', '
                              || anon._quoted(CAST(released AS VARCHAR)) || ', ' || place || ', '
                              || anon._quoted(TRY_CAST(cols AS VARCHAR[])[place]) || ')'),
                          ' UNION ALL ') END)
    ), _duckanon_ancestors AS (
        SELECT DISTINCT column_name, label FROM anon._hierarchies(caller, hierarchies) WHERE level > 0
    ), _duckanon_coarse AS MATERIALIZED (
        SELECT coalesce(list(column_name), []) AS names
        FROM (SELECT kinds.column_name
              FROM (SELECT place, label, is_prefix, lower(CAST(cols AS VARCHAR[])[place]) AS column_name
                    FROM _duckanon_unseen) AS unseen
              JOIN (SELECT lower(column_name) AS column_name, anon._kind(column_type) AS kind
                    FROM anon._columns(original)) AS kinds ON kinds.column_name = unseen.column_name
              LEFT JOIN _duckanon_ancestors AS ancestors
                     ON ancestors.column_name = unseen.column_name AND ancestors.label = unseen.label
              GROUP BY kinds.column_name
              HAVING any_value(kinds.kind) <> 'text' OR bool_and(unseen.is_prefix)
                  OR bool_or(unseen.label IS NULL OR unseen.label = 'other' OR unseen.label LIKE '{%}'
                             OR unseen.label LIKE '%*' OR ancestors.label IS NOT NULL))
    ), _duckanon_people AS (                           -- other columns are NULL: nothing is asked about them
        SELECT CASE WHEN list_contains((SELECT coarse.names FROM _duckanon_coarse AS coarse),
                                       lower(alias(COLUMNS(cols)))) THEN COLUMNS(cols) END
        FROM query_table(original) WHERE (SELECT len(coarse.names) > 0 FROM _duckanon_coarse AS coarse)
    ), _duckanon_release AS (
        SELECT CASE WHEN list_contains((SELECT coarse.names FROM _duckanon_coarse AS coarse),
                                       lower(alias(COLUMNS(cols)))) THEN anon._cell_text(COLUMNS(cols)) END
        FROM query_table(released) WHERE (SELECT len(coarse.names) > 0 FROM _duckanon_coarse AS coarse)
    ), _duckanon_shown AS MATERIALIZED (
        SELECT place, value AS label
        FROM anon._value_counts('_duckanon_release', cols), _duckanon_coarse
        WHERE list_contains(names, lower(CAST(cols AS VARCHAR[])[place]))
    )
    SELECT list({'column_name': CAST(cols AS VARCHAR[])[place], 'label': label, 'rule': rule,
                 'held_from': CASE WHEN rule = 'listed' THEN anon._any_number(value) ELSE held_from END,
                 'held_to': held_to, 'value': value})
    FROM (SELECT *, count(*) OVER (PARTITION BY place, label) AS held
          FROM anon._label_rules(caller, '_duckanon_people', '_duckanon_shown', cols, hierarchies))
    WHERE NOT coalesce(CASE rule WHEN 'listed' THEN held = 1 AND value = label
                                 WHEN 'interval'
                                 THEN held_from = held_to AND regexp_full_match(label, '-?\d+(\.\d+)?') END, false));
