-- anon._quoted_list: texts as a list in SQL, for statements that are put together for query().
CREATE OR REPLACE MACRO anon._quoted_list(texts) AS
    'system.main.list_value(' || anon._joined(list_transform(texts, lambda member: anon._quoted(member)), ', ') || ')';
