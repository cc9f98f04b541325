-- anon._hashed_members: who is in which class, with the class as one 64-bit hash: where
-- classes are counted by people and people by classes this takes half the time of comparing values. That the smallest
-- of ten million classes has the hash of another, and seems larger than it is, has a probability of 1 in 10^12.
CREATE OR REPLACE MACRO anon._hashed_members(caller, tbl, cols, nulls, person) AS TABLE
WITH _duckanon_checked AS NOT MATERIALIZED (
    FROM query_table(anon._checked_person(caller, person, cols, anon._checked_groups(caller, tbl, cols, nulls)))
)
SELECT hash(UNPACK(anon._value_code(COLUMNS(cols)))) AS class,
       anon._value_code(COLUMNS([person])) AS member, count(*) AS row_count
FROM query_table(CASE WHEN anon._is_plain_sensitive(tbl, cols, person, nulls) THEN CAST(tbl AS VARCHAR)
                      ELSE '_duckanon_checked' END)
WHERE (nulls = 'value' OR COLUMNS(cols) IS NOT NULL)
      AND anon._all_uncollated(caller, cols, concat_ws('', UNPACK(CAST(COLUMNS(cols) AS VARCHAR))))
GROUP BY ALL;
