-- anon._hmac: HMAC-SHA-256 of a message under a key, both as bytes, in 64 hexadecimal digits (RFC 2104). The block of
-- 64 bytes that it begins with is the key, or the hash of a longer one, followed by zeros, with every byte changed by a
-- fixed one (section 2). The lambdas give the key a name: written out wherever it is used, it would be bound six times.
CREATE OR REPLACE MACRO anon._hmac(bytes, message) AS
    lower(sha256(CAST(xor(list_transform([bytes], lambda own:
                              CAST(unhex(rpad(CASE WHEN octet_length(own) > 64 THEN sha256(own) ELSE hex(own) END,
                                              128, '0')) AS BIT))[1],
                          CAST(unhex(repeat('5c', 64)) AS BIT)) AS BLOB)
                 || unhex(sha256(CAST(xor(list_transform([bytes], lambda own:
                                              CAST(unhex(rpad(CASE WHEN octet_length(own) > 64 THEN sha256(own)
                                                                   ELSE hex(own) END, 128, '0')) AS BIT))[1],
                                          CAST(unhex(repeat('36', 64)) AS BIT)) AS BLOB) || message))));
