-- anon._classes: the equivalence classes of a table: one row per combination of values that occurs.
--     nulls            'value': NULL is a value, equal to itself; 'drop': rows with a NULL in a column are left out
--     is_open, alpha   whether NULL matches anything (anon._matching_classes) instead, so that the size is the number
--                      of rows that a class matches, those of other classes included
--     person           name of the column that says whose row it is; NULL: every row is a person
--     _duckanon_size   how many different people are in the class; 0 where nobody's name is known
--     _duckanon_rows   how many rows are in it
--     _duckanon_anyone the 64-bit hash of one of its people, NULL without `person`. Two people with the same hash, one
--                      pair in 2^64, count as one: a class may seem smaller than it is, but never larger
-- Which of the steps is read is known when the query is bound; the others leave no trace in the plan.
CREATE OR REPLACE MACRO anon._classes(
    caller, tbl, cols, nulls, person := NULL, is_open := false, alpha := NULL
) AS TABLE
WITH _duckanon_by_rows AS (
    SELECT *, _duckanon_size AS _duckanon_rows, NULL::UBIGINT AS _duckanon_anyone
    FROM anon._row_classes(caller, tbl, cols, nulls)
), _duckanon_by_people AS (        -- as fast as count(DISTINCT person), and it counts the rows too
    SELECT COLUMNS(cols), count(_duckanon_person) AS _duckanon_size, sum(_duckanon_rows)::BIGINT AS _duckanon_rows,
           any_value(_duckanon_person) AS _duckanon_anyone
    FROM (SELECT COLUMNS(cols), count(*) AS _duckanon_rows,
                 anon._value_code(COLUMNS([person])) AS _duckanon_person
          FROM query_table(anon._checked_person(caller, person, cols, anon._checked_groups(caller, tbl, cols, nulls)))
          WHERE (nulls = 'value' OR COLUMNS(cols) IS NOT NULL)
                AND anon._all_uncollated(caller, cols, concat_ws('', UNPACK(CAST(COLUMNS(cols) AS VARCHAR))))
          GROUP BY ALL)
    GROUP BY ALL
), _duckanon_values AS MATERIALIZED (
    SELECT COLUMNS(cols), hash(UNPACK(anon._value_code(COLUMNS(cols)))) AS _duckanon_key, count(*) AS _duckanon_rows
    FROM query_table(anon._checked_groups(caller, tbl, cols, 'value'))
    WHERE anon._all_uncollated(caller, cols, concat_ws('', UNPACK(CAST(COLUMNS(cols) AS VARCHAR))))
    GROUP BY ALL
), _duckanon_held AS (
    SELECT _duckanon_key AS class, _duckanon_rows AS row_count,
           [UNPACK(constant_or_null(true, COLUMNS(* EXCLUDE (_duckanon_key, _duckanon_rows))))] AS held,
           [UNPACK(hash(hash(COLUMNS(* EXCLUDE (_duckanon_key, _duckanon_rows)),
                             alias(COLUMNS(* EXCLUDE (_duckanon_key, _duckanon_rows))))))] AS places
    FROM (SELECT anon._value_code(COLUMNS(cols)), _duckanon_key, _duckanon_rows FROM _duckanon_values)
), _duckanon_records AS (
    SELECT class, row_count, NULL::DOUBLE AS stands_for,
           list_filter(range(1, 1 + len(held)), lambda place: held[place] IS NULL) AS missing, places
    FROM _duckanon_held
), _duckanon_by_matches AS (
    SELECT COLUMNS(cols), _duckanon_size, _duckanon_rows, NULL::UBIGINT AS _duckanon_anyone
    FROM _duckanon_values                          -- rounded, so that sums of tenths in another order are the same size
         JOIN (SELECT class AS _duckanon_key, round(frequency, 9) AS _duckanon_size
               FROM anon._matching_classes('_duckanon_records', alpha, true)) USING (_duckanon_key)
)
FROM query_table(CASE WHEN is_open THEN '_duckanon_by_matches'
                      WHEN person IS NULL THEN '_duckanon_by_rows' ELSE '_duckanon_by_people' END);
