-- anon._narrowing_words: what anon._narrowing_refusal says of pairs, after a `beginning`; NULL where there is none.
CREATE OR REPLACE MACRO anon._narrowing_words(pairs, beginning) AS
    CASE WHEN len(pairs) > 0 THEN
        beginning || '"' || pairs[1]['kept_column'] || '" in keep narrows down "' || pairs[1]['column_name'] || '"'
        || anon._joined(list_transform(pairs[2:len(pairs)], lambda pair:
               ', "' || pair['kept_column'] || '" narrows down "' || pair['column_name'] || '"'), '')
    END;
