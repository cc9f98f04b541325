-- anon.generalize_prefix: the first `keep` characters of a code, a star for each of the others: '02139' becomes
-- '021**'. NULL stays NULL.
--     code  code to shorten; a ZIP code stored as a number has lost its leading zeros: pad it first [a text or a whole
--           number]
--     keep  number of characters that stay; 0 leaves only stars, the code's length or more leaves the code as it is [a
--           whole number, at least 0]
-- promises: FunctionOfValue(), EqualsDefinition()
-- test: tests/generalize/generalize_prefix.test
CREATE OR REPLACE MACRO anon.generalize_prefix(code, keep) AS
    CASE WHEN coalesce(NOT regexp_full_match(CAST(keep AS VARCHAR), '\d{1,9}'), true)
              THEN anon._refused('anon.generalize_prefix', 'keep', 'a whole number of at least 0', keep)
         ELSE left(anon._equal_text(code), CAST(keep AS BIGINT))
              || repeat('*', greatest(length(anon._equal_text(code)) - CAST(keep AS BIGINT), 0)) END;
COMMENT ON MACRO anon.generalize_prefix IS
    'The first characters of a code, a star for each of the others.';
