-- anon._hierarchies: all hierarchies of a call as one relation: column_name (lower case), leaf, level (0 is the leaf
-- itself), label. An unknown number of tables is read by a UNION ALL that is put together for query() when the call is
-- bound; each is read as query_table() would, so that tables, views and CTEs work.
--     hierarchies  a MAP or STRUCT from a column's name to the name of its table: first column the leaf, then level 1,
--                  level 2, ...; NULL: none
CREATE OR REPLACE MACRO anon._hierarchies(caller, hierarchies) AS TABLE
SELECT column_name, labels[1] AS leaf, unnest(range(len(labels))) AS level, unnest(labels) AS label
FROM query(
    CASE WHEN hierarchies IS NOT NULL AND NOT regexp_matches(typeof(hierarchies), '^(MAP|STRUCT)\(')
              THEN error(anon._must_be(caller, 'hierarchies', 'a map from columns to hierarchy tables such as '
                                                              || 'MAP {''zip'': ''zip_hierarchy''}', hierarchies))
         WHEN coalesce(cardinality(TRY_CAST(hierarchies AS MAP(VARCHAR, VARCHAR))), 0) = 0
              THEN 'SELECT NULL::VARCHAR AS column_name, NULL::VARCHAR[] AS labels LIMIT 0'
         ELSE anon._joined(
             list_transform(map_entries(TRY_CAST(hierarchies AS MAP(VARCHAR, VARCHAR))), lambda entry:
                 'FROM anon._hierarchy(' || anon._quoted(caller) || ', ' || anon._quoted(lower(entry['key'])) || ', '
                                         || anon._quoted(entry['value']) || ')'),
             ' UNION ALL ') END);
