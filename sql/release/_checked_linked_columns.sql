-- anon._checked_linked_columns: true where all columns exist: the person's in every table, those of the class in
-- `people` or in every table, the others in any; refuses otherwise.
CREATE OR REPLACE MACRO anon._checked_linked_columns(caller, tables, person, cols, class, people, keep, sensitive) AS (
    SELECT coalesce(bool_and(CASE WHEN found >= wanted THEN true
                                  ELSE error(caller || ': column "' || name || '" does not exist in '
                                             || CASE WHEN wanted > 1 THEN 'all' ELSE 'any' END
                                             || ' of the tables.') END),
                    true)
    FROM (SELECT lower(name) AS name, max(wanted) AS wanted
          FROM (SELECT unnest(cols) AS name, 1 AS wanted
                UNION ALL SELECT unnest(coalesce(keep, [])), 1
                UNION ALL SELECT sensitive, 1 WHERE sensitive IS NOT NULL
                UNION ALL SELECT person, len(tables) + CASE WHEN people IS NULL THEN 0 ELSE 1 END
                UNION ALL SELECT unnest(coalesce(class, [])), CASE WHEN people IS NULL THEN len(tables) ELSE 1 END)
          GROUP BY lower(name)) AS names
    LEFT JOIN (SELECT lower(column_name) AS name, count(*) AS found
               FROM query(list_transform([CASE WHEN people IS NULL THEN tables ELSE list_concat(tables, [people]) END],
                   lambda those: anon._table_calls('_columns', those, list_transform(those, lambda one: ''),
                                                   ' UNION ALL '))[1])
               GROUP BY lower(column_name)) AS present USING (name));
