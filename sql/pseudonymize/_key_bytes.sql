-- anon._key_bytes: a secret key as bytes: a text as UTF-8, a BLOB as it is. A key that somebody could guess is refused,
-- and nothing but its length is said of it.
CREATE OR REPLACE MACRO anon._key_bytes(caller, key) AS
    CASE WHEN typeof(key) = 'VARCHAR' AND octet_length(encode(CAST(key AS VARCHAR))) >= 16
              THEN encode(CAST(key AS VARCHAR))
         WHEN typeof(key) = 'BLOB' AND octet_length(TRY_CAST(key AS BLOB)) >= 16 THEN TRY_CAST(key AS BLOB)
         ELSE encode(CAST(anon._refuse(anon._must_be(
                  caller, 'key', 'a secret text or BLOB of at least 16 bytes',
                  CASE WHEN key IS NULL THEN 'NULL'
                       WHEN typeof(key) = 'VARCHAR' THEN 'one of ' || octet_length(encode(CAST(key AS VARCHAR)))
                       WHEN typeof(key) = 'BLOB' THEN 'one of ' || octet_length(TRY_CAST(key AS BLOB))
                       ELSE regexp_replace(typeof(key), 'ENUM\(.*\)', 'ENUM') END)) AS VARCHAR)) END;
