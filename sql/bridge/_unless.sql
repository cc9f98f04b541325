-- anon._unless: true, unless there is a sentence to stop the query with. It is said once, as it may be a whole query
-- that would be bound twice: error(NULL) is NULL.
CREATE OR REPLACE MACRO anon._unless(sentence) AS error(sentence) IS NULL;
