-- anon._value_bytes: the bytes that stand for a value: a BLOB's own, those of its text in UTF-8 otherwise. A moment
-- with a time zone is written in UTC, since its text is another one in every time zone. -0.0 and 0.0, which join, have
-- the same bytes.
CREATE OR REPLACE MACRO anon._value_bytes(caller, parameter, value) AS
    CASE WHEN typeof(value) = 'BLOB' THEN TRY_CAST(value AS BLOB)
         WHEN typeof(value) = 'TIMESTAMP WITH TIME ZONE'
              THEN encode(CAST(make_timestamp(CAST(epoch_us(TRY_CAST(value AS TIMESTAMPTZ)) AS BIGINT)) AS VARCHAR)
                          || '+00')
         WHEN contains(typeof(value), 'WITH TIME ZONE')
              THEN encode(anon._refused_cell(caller, parameter, 'a value whose text is the same in every time zone',
                                             value))
         ELSE encode(anon._equal_text(value)) END;
