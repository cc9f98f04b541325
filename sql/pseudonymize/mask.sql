-- anon.mask: a text with a star for each character, except for the first and the last ones: for somebody who has to
-- recognize a record, such as a clerk on the phone. It is no anonymization: see the reference.
--     value       value of any type, by its text; NULL stays NULL. E-mail addresses keep @ and dots, phone and card
--                 numbers the signs between their digits [any value]
--     keep_first  number of characters that stay at the beginning; of an e-mail address, of what is before the @ [a
--                 whole number from 0 to 100]
--     keep_last   number of characters that stay at the end; of an e-mail address, of what is after the @ [a whole
--                 number from 0 to 100]
-- Signs that stay anyway are not counted. Where nothing would be hidden, everything is.
-- promises: FunctionOfValue(), EqualsDefinition()
-- test: tests/pseudonymize/mask.test
CREATE OR REPLACE MACRO anon.mask(value, keep_first := 0, keep_last := 0) AS
    CASE WHEN coalesce(NOT regexp_full_match(CAST(keep_first AS VARCHAR), '\d{1,2}|100'), true)
              THEN anon._refused('anon.mask', 'keep_first', 'a whole number from 0 to 100', keep_first)
         WHEN coalesce(NOT regexp_full_match(CAST(keep_last AS VARCHAR), '\d{1,2}|100'), true)
              THEN anon._refused('anon.mask', 'keep_last', 'a whole number from 0 to 100', keep_last)
         ELSE anon._masked_text(anon._equal_text(value), TRY_CAST(CAST(keep_first AS VARCHAR) AS BIGINT),
                                TRY_CAST(CAST(keep_last AS VARCHAR) AS BIGINT)) END;
COMMENT ON MACRO anon.mask IS
    'A text with a star for each character but the first and last ones; e-mail addresses and phones keep their shape.';
