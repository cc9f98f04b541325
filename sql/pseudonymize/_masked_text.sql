-- anon._masked_text: a text with stars: of an e-mail address, @ and the dots stay, of a number with signs between its
-- digits (a phone, a card) these signs, of anything else nothing. The two sides of an
-- address are masked each for itself.
CREATE OR REPLACE MACRO anon._masked_text("text", keep_first, keep_last) AS
    CASE WHEN regexp_full_match("text", '[^@\s]+@[^@\s]+\.[^@\s]+')
              THEN anon._masked(regexp_extract("text", '^[^@]+', 0), '[.]', '[^.]', keep_first, 0) || '@'
                   || anon._masked(regexp_extract("text", '[^@]+$', 0), '[.]', '[^.]', 0, keep_last)
         WHEN regexp_full_match("text", '[-+()./ \d]*') AND regexp_matches("text", '(\d\D*){5}')
              THEN anon._masked("text", '[^0-9]', '[0-9]', keep_first, keep_last)
         WHEN length("text") <= keep_first + keep_last THEN repeat('*', length("text"))
         ELSE left("text", keep_first) || repeat('*', length("text") - keep_first - keep_last)
              || right("text", keep_last) END;
