-- anon._checked_linked_columns: true where the column of the person is in every table, and those of the class are in
-- `people` or in every table; refuses otherwise. (That the others are in any, DuckDB asks when it binds the query.)
--     present  a step with the columns of the tables: anon._linked_columns
CREATE OR REPLACE MACRO anon._checked_linked_columns(caller, tables, person, class, people, present) AS (
    SELECT coalesce(bool_and(error(caller || ': column "' || name || '" does not exist in '
                                   || anon._joined(lacking, ', ') || '.')), true)
    FROM (SELECT name, list(table_name) AS lacking
          FROM (SELECT person AS name,
                       unnest(list_concat(tables, CASE WHEN people IS NULL THEN [] ELSE [people] END)) AS table_name
                UNION ALL
                SELECT name, unnest(CASE WHEN people IS NULL THEN tables ELSE [people] END)
                FROM (SELECT unnest(coalesce(class, [])) AS name)) AS wanted
          ANTI JOIN (FROM query_table(present)) AS there
               ON lower(there.column_name) = lower(wanted.name) AND there.table_name = wanted.table_name
          GROUP BY name));
