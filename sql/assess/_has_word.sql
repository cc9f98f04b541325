-- anon._has_word: whether a column's plain name (anon._plain_name) contains one of the words as a whole word; in the
-- words # stands for number, no, num, id and the like.
CREATE OR REPLACE MACRO anon._has_word(plain_name, words) AS
    coalesce(regexp_matches(plain_name, '(^|_)(' || replace(words, '#', '(no|nr|num|numbers?|ids?|identifiers?)')
                                                 || ')_?[0-9]*(_|$)'), false);
