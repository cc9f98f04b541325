-- anon._hmac: HMAC-SHA-256 of a message under a key, both as bytes, in 64 hexadecimal digits (RFC 2104).
CREATE OR REPLACE MACRO anon._hmac(bytes, message) AS
    lower(sha256(anon._key_block(bytes, '5c') || unhex(sha256(anon._key_block(bytes, '36') || message))));
