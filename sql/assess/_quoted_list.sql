-- anon._quoted_list: a list of texts as a literal of SQL, for statements that are put together for query().
CREATE OR REPLACE MACRO anon._quoted_list(texts) AS
    '[' || anon._joined(list_transform(coalesce(TRY_CAST(texts AS VARCHAR[]), []), lambda one: anon._quoted(one)), ', ')
        || ']::VARCHAR[]';
