-- anon._narrowing_words: what anon._narrowing_refusal says of a pair; only the first has a `beginning`.
CREATE OR REPLACE MACRO anon._narrowing_words(pair, place, beginning) AS
    CASE WHEN place = 1 THEN beginning ELSE '' END || '"' || pair['kept_column'] || '"'
    || CASE WHEN place = 1 THEN ' in keep' ELSE '' END || ' narrows down "' || pair['column_name'] || '"';
