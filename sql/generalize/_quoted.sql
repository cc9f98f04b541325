-- anon._quoted: a text as a literal of SQL, for statements that are put together for query().
CREATE OR REPLACE MACRO anon._quoted(content) AS '''' || replace(content, '''', '''''') || '''';
