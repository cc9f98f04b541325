-- anon._named_like: whether a plain name is one that a rule of anon._identifier_rule_list looks for. Counts, shares,
-- flags and the like are about an identifier, not one themselves.
CREATE OR REPLACE MACRO anon._named_like(plain_name, name_words, except_words) AS
    NOT anon._has_word(plain_name, except_words)
    AND NOT regexp_matches(plain_name, '^(n|is|has|had|any|count|num|number_of|mean|avg|average|median|min|max'
                                       '|sum|total|sd|std|stddev|var|pct|percent|share|rate|len|length)_')
    AND NOT regexp_matches(plain_name, '_(count|counts|n|flag|ind|size|type|status|rate|score|pct|percent'
                                       '|length|verified|valid|consent|enabled|preference|confirmed|missing'
                                       '|known'
                                       '|model|brand|os|usage|color|colour|format|quality|mean|avg|average'
                                       '|median|sd|std|min|max|sum|total)$')
    AND anon._has_word(plain_name, name_words);
