-- anon._table_hierarchies: the hierarchies of an aggregate table as one list, for Python: column_name (lower case),
-- tree (the hierarchy, since a column may have several), labels (a value, then its groups, ever coarser).
--     hierarchies  a map from a column's name to a hierarchy table or to a list of them; NULL: none
CREATE OR REPLACE MACRO anon._table_hierarchies(caller, hierarchies) AS (
    SELECT list({'column_name': column_name, 'tree': tree, 'labels': labels})
    FROM query(coalesce(nullif(anon._joined(
        list_transform(map_entries(
            CASE WHEN ends_with(typeof(hierarchies), '[])') THEN TRY_CAST(hierarchies AS MAP(VARCHAR, VARCHAR[]))
                 ELSE map_from_entries(list_transform(map_entries(TRY_CAST(hierarchies AS MAP(VARCHAR, VARCHAR))),
                          lambda entry: {'key': entry['key'], 'value': [entry['value']]})) END), lambda entry:
            anon._joined(list_transform(entry['value'], lambda hierarchy:
                'SELECT ' || anon._quoted(hierarchy) || ' AS tree, * FROM anon._hierarchy('
                || anon._quoted(caller) || ', ' || anon._quoted(lower(entry['key'])) || ', '
                || anon._quoted(hierarchy) || ')'), ' UNION ALL ')),
        ' UNION ALL '), ''), 'SELECT NULL::VARCHAR AS tree, NULL::VARCHAR AS column_name, NULL::VARCHAR[] AS labels '
                             || 'LIMIT 0')));
