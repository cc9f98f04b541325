-- anon._unless: true, unless there is a sentence to stop the query with.
CREATE OR REPLACE MACRO anon._unless(sentence) AS CASE WHEN sentence IS NULL THEN true ELSE error(sentence) END;
