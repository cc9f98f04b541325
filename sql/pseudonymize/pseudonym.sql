-- anon.pseudonym: a value replaced by one that only the holder of the key can compute: HMAC-SHA-256 (RFC 2104, FIPS
-- 198-1), as Python's hmac.new(key, value, 'sha256').hexdigest(). Equal values have equal pseudonyms, in every table
-- and every release with the same key, so that tables can still be joined.
--     value   value to replace: a BLOB by its bytes, others by the UTF-8 bytes of their text. NULL stays NULL [any
--             value]
--     key     secret: whoever has it can try all values [a text or BLOB of at least 16 bytes]
--     length  number of hexadecimal digits, see `anon.pseudonym_collision` [a whole number from 8 to 64]
-- promises: FunctionOfValue(one_to_one=True)
-- test: tests/pseudonymize/pseudonym.test
CREATE OR REPLACE MACRO anon.pseudonym(value, key, length := 64) AS
    CASE WHEN coalesce(NOT regexp_full_match(CAST(length AS VARCHAR), '[89]|[1-5]\d|6[0-4]'), true)
              THEN anon._refused('anon.pseudonym', 'length', 'a whole number from 8 to 64', length)
         WHEN octet_length(anon._key_bytes('anon.pseudonym', key)) < 16 THEN NULL  -- it is looked at for NULLs as well
         ELSE left(anon._hmac(anon._key_bytes('anon.pseudonym', key),
                              anon._value_bytes('anon.pseudonym', 'value', value)), CAST(length AS BIGINT)) END;
COMMENT ON MACRO anon.pseudonym IS
    'A value as HMAC-SHA-256 under a secret key, so that tables can be joined without the value.';
