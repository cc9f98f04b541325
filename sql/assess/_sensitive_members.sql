-- anon._sensitive_members: who has which value in which class: one row per class, value and person, or without `person`
-- per class and value. Everything about diversity and closeness is computed from these.
--     class   the 64-bit hash of the class's columns, which is faster to group by than their values. That two of a
--             million classes have the same hash, and are taken for one, has a probability of 1 in 30 million
--     value   of the sensitive column; NULL is one
--     member  the 64-bit hash of the person's value, NULL where it is NULL and without `person`
--     size    how many rows
CREATE OR REPLACE MACRO anon._sensitive_members(caller, tbl, cols, sensitive, nulls, person) AS TABLE
WITH _duckanon_checked AS NOT MATERIALIZED (
    FROM query_table(anon._checked_sensitive(caller, tbl, cols, sensitive, nulls, person))
), _duckanon_source AS NOT MATERIALIZED (
    FROM query_table(CASE WHEN person IS NULL AND anon._is_plain_sensitive(tbl, cols, sensitive, nulls)
                          THEN CAST(tbl AS VARCHAR) ELSE '_duckanon_checked' END)
    WHERE (nulls = 'value' OR COLUMNS(cols) IS NOT NULL)
          AND anon._all_uncollated(caller, cols, concat_ws('', UNPACK(CAST(COLUMNS(cols) AS VARCHAR))))
), _duckanon_by_rows AS NOT MATERIALIZED (                      -- a key less, which is constant
    SELECT class, value, NULL::UBIGINT AS member, size
    FROM (SELECT hash(UNPACK(anon._value_code(COLUMNS(cols)))) AS class,
                 CASE WHEN anon._uncollated(caller, COLUMNS([sensitive])) THEN COLUMNS([sensitive]) END AS value,
                 count(*) AS size
          FROM _duckanon_source
          GROUP BY ALL)
), _duckanon_by_people AS NOT MATERIALIZED (
    SELECT hash(UNPACK(anon._value_code(COLUMNS(cols)))) AS class,
           CASE WHEN anon._uncollated(caller, COLUMNS([sensitive])) THEN COLUMNS([sensitive]) END AS value,
           anon._value_code(COLUMNS([person])) AS member, count(*) AS size
    FROM _duckanon_source
    GROUP BY ALL
)
FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_by_rows' ELSE '_duckanon_by_people' END);
