-- anon._unlike_plan: what is wrong with a table's column for a plan of times or of numbers, as the end of a sentence;
-- NULL where nothing is. Without it a text such as 2024-05-01 would be no time, and silently get the label of the rest.
-- Texts that say numbers are read as numbers; what has no type, NULL alone, fits everything.
CREATE OR REPLACE MACRO anon._unlike_plan(column_name, column_type, covers) AS
    CASE WHEN column_type = '"NULL"' THEN NULL
         WHEN covers = 'time' AND anon._kind(column_type) <> 'date'
              THEN 'column "' || column_name || '" must hold dates or timestamps, as the plan''s does; its type is '
                   || column_type || ': cast it first.'
         WHEN covers = 'number' AND anon._kind(column_type) NOT IN ('numeric', 'text')
              THEN 'column "' || column_name || '" must hold numbers, as the plan''s does; its type is '
                   || column_type || ': cast it first.' END;
