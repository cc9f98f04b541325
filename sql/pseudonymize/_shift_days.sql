-- anon._shift_days: by how many days a person's dates are shifted: from -max_days to max_days, never 0, all equally
-- likely (but for one part in 2^47), known to the holder of the key only. The message begins with words of its own: the
-- pseudonym of the same person under the same key is published, and must not give the shift away. Halves are rounded
-- away from 0, so that 0 to 2 * max_days - 1 become -max_days to -1 and 1 to max_days: the hash is written once.
CREATE OR REPLACE MACRO anon._shift_days(person, key, max_days) AS
    CAST(round(CAST('0x' || left(anon._hmac(anon._key_bytes('anon.shift_date', key),
                                            encode('anon.shift_date: ')
                                            || anon._value_bytes('anon.shift_date', 'person', person)), 16) AS UBIGINT)
               % CAST(nullif(greatest(2::BIGINT * TRY_CAST(CAST(max_days AS VARCHAR) AS INTEGER), 0), 0) AS UBIGINT)
               - TRY_CAST(CAST(max_days AS VARCHAR) AS INTEGER) + 0.5::DOUBLE) AS INTEGER);
