-- anon._is_mentioned: whether the name of a column occurs in a condition, as a word of its own; our own column always
-- does, so that there is one.
CREATE OR REPLACE MACRO anon._is_mentioned(name, condition) AS
    name = '_duckanon_none'
    OR coalesce(regexp_matches(CAST(condition AS VARCHAR),
                               '(?is)(^|\W)' || regexp_escape(replace(name, '"', '""')) || '(\W|$)'), false);
