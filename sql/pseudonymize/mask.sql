-- anon.mask: a text with a star for each character, but for the first and the last ones that are to be seen: for
-- somebody who has to recognize a record, such as a clerk on the phone. It is no anonymization: see the reference.
--     value       of any type, by its text; NULL stays NULL. Of an e-mail address @ and the dots stay, of a phone or
--                 card number the signs between its digits
--     keep_first  so many characters stay at the beginning, from 0 to 100
--     keep_last   so many stay at the end. Signs that stay anyway are not counted; of an e-mail address keep_first is
--                 for what is before the @, and keep_last for what is after it. Where nothing would be hidden, all is
-- test: tests/pseudonymize/mask.test
CREATE OR REPLACE MACRO anon.mask(value, keep_first := 0, keep_last := 0) AS
    CASE WHEN coalesce(NOT regexp_full_match(CAST(keep_first AS VARCHAR), '\d{1,2}|100'), true)
              THEN anon._refused('anon.mask', 'keep_first', 'a whole number from 0 to 100', keep_first)
         WHEN coalesce(NOT regexp_full_match(CAST(keep_last AS VARCHAR), '\d{1,2}|100'), true)
              THEN anon._refused('anon.mask', 'keep_last', 'a whole number from 0 to 100', keep_last)
         ELSE anon._masked_text(CAST(value AS VARCHAR), TRY_CAST(keep_first AS BIGINT),
                                TRY_CAST(keep_last AS BIGINT)) END;
COMMENT ON MACRO anon.mask IS
    'A text with a star for each character but the first and last ones; e-mail addresses and phones keep their shape.';
