-- anon._value_code: a 64-bit code of a value, NULL for NULL: equal for equal values, and different for different ones
-- but for one pair in 2^64. DuckDB's hash() is that for numbers, dates, times and texts of at most 12 bytes. Of other
-- types it puts parts together so that neighbouring values meet: -1 and 0 of HUGEINT (which sums of integers are), 31
-- and 62 days of INTERVAL, texts that differ in the last byte of two blocks of eight, [] and [NULL] of lists. There the
-- code is of the hash and of the key by which DuckDB sorts the value. Types are compared when the query is bound; one
-- that is not among the frequent ones of the list has a right code all the same, in some more time.
CREATE OR REPLACE MACRO anon._value_code(value) AS
    CASE WHEN value IS NULL THEN NULL
         WHEN contains(
                  '|BOOLEAN|TINYINT|SMALLINT|INTEGER|BIGINT|UINTEGER|UBIGINT|FLOAT|DOUBLE|DATE|TIMESTAMP|',
                  concat('|', typeof(value), '|'))
              OR (typeof(value) = 'VARCHAR' AND strlen(CAST(value AS VARCHAR)) <= 12) THEN hash(value)
         WHEN typeof(value) = 'INTERVAL'          -- 1 month equals 30 days
              THEN hash(value, create_sort_key(normalized_interval(TRY_CAST(value AS INTERVAL)), 'ASC NULLS LAST'))
         ELSE hash(value, create_sort_key(value, 'ASC NULLS LAST')) END;
