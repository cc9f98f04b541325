-- anon._masked_between: a text with stars for what is to be hidden between its beginning and its end.
CREATE OR REPLACE MACRO anon._masked_between("text", beginning, ending, hidden) AS
    beginning || regexp_replace(left(right("text", length("text") - length(beginning)),
                                     length("text") - length(beginning) - length(ending)), hidden, '*', 'g')
    || ending;
