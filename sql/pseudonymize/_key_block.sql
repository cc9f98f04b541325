-- anon._key_block: a key as the block of 64 bytes that HMAC begins with (RFC 2104, section 2): a longer one is hashed
-- first, zeros follow, and every byte is changed by a fixed one, here given as two digits.
CREATE OR REPLACE MACRO anon._key_block(bytes, changed_by) AS
    CAST(xor(CAST(unhex(rpad(CASE WHEN octet_length(bytes) > 64 THEN sha256(bytes) ELSE hex(bytes) END, 128, '0'))
                  AS BIT),
             CAST(unhex(repeat(changed_by, 64)) AS BIT)) AS BLOB);
