-- anon._risk_records: what the measures of risk know of a row: its class, whose it is, its weight and its household.
--     class      the 64-bit hash of the columns, which is faster to join by than their values
--     missing    the places of the columns that are NULL
--     places     the hash of each column's value, other ones for equal values of two columns and none NULL: their xor
--                is a code of the class from which that of any column can be taken away
--     member     the hash of the person's value, NULL where it is NULL and without `person`
--     home       the hash of the household's value, NULL where it is NULL and without `household`
--     stands_for  the row's weight, NULL without `weight`
--     row_count  1; with `nulls` 'any', rows that are alike are put together, and their weights added
-- A column that was not named is taken from the step below, where it is NULL.
CREATE OR REPLACE MACRO anon._risk_records(
    caller, tbl, cols, weight, population, household, person, method, nulls, alpha
) AS TABLE
WITH _duckanon_with_none AS NOT MATERIALIZED (
    SELECT *, NULL::UBIGINT AS _duckanon_none
    FROM query_table(anon._checked_risk(caller, tbl, cols, weight, population, household, person, method, nulls, alpha))
), _duckanon_named AS NOT MATERIALIZED (
    SELECT COLUMNS(cols),
           CASE WHEN person IS NOT NULL THEN anon._value_code(COLUMNS([anon._or_none(person)])) END AS _duckanon_member,
           CASE WHEN household IS NOT NULL
                     THEN anon._value_code(COLUMNS([anon._or_none(household)])) END AS _duckanon_household,
           CASE WHEN weight IS NULL THEN NULL
                WHEN isfinite(TRY_CAST(COLUMNS([anon._or_none(weight)]) AS DOUBLE))
                     AND TRY_CAST(COLUMNS([anon._or_none(weight)]) AS DOUBLE) > 0
                     THEN CAST(COLUMNS([anon._or_none(weight)]) AS DOUBLE)
                ELSE error(caller || ': weight must name a column of positive numbers; got one that holds NULL or '
                           || 'something else.') END AS _duckanon_weight
    FROM _duckanon_with_none
    WHERE (nulls <> 'drop' OR COLUMNS(cols) IS NOT NULL) AND anon._uncollated(caller, COLUMNS(cols))
), _duckanon_together AS NOT MATERIALIZED (                     -- values are grouped in half the time of hashes
    SELECT COLUMNS(* EXCLUDE (_duckanon_weight)), count(*) AS _duckanon_rows,
           CASE WHEN weight IS NOT NULL THEN fsum(_duckanon_weight) END AS _duckanon_weight
    FROM _duckanon_named GROUP BY ALL
), _duckanon_single AS NOT MATERIALIZED (
    SELECT *, 1 AS _duckanon_rows FROM _duckanon_named
), _duckanon_coded AS NOT MATERIALIZED (
    SELECT anon._value_code(COLUMNS(cols)),
           COLUMNS(['_duckanon_member', '_duckanon_household', '_duckanon_weight', '_duckanon_rows'])
    FROM query_table(CASE WHEN nulls = 'any' THEN '_duckanon_together' ELSE '_duckanon_single' END)
), _duckanon_held AS NOT MATERIALIZED (
    SELECT hash(*COLUMNS(* EXCLUDE (_duckanon_member, _duckanon_household, _duckanon_weight, _duckanon_rows))) AS class,
           constant_or_null(true, *COLUMNS(* EXCLUDE (_duckanon_member, _duckanon_household, _duckanon_weight,
                                                      _duckanon_rows))) AS is_full,
           CASE WHEN is_full THEN NULL
                ELSE [UNPACK(constant_or_null(true, COLUMNS(* EXCLUDE (_duckanon_member, _duckanon_household,
                                                                            _duckanon_weight, _duckanon_rows))))] END
               AS held,
           [UNPACK(hash(hash(
               COLUMNS(* EXCLUDE (_duckanon_member, _duckanon_household, _duckanon_weight, _duckanon_rows)),
               alias(COLUMNS(* EXCLUDE (_duckanon_member, _duckanon_household, _duckanon_weight, _duckanon_rows))))))]
               AS places,
           _duckanon_member AS member, _duckanon_household AS home, _duckanon_weight AS stands_for,
           _duckanon_rows AS row_count
    FROM _duckanon_coded
)
SELECT class, CASE WHEN is_full THEN [] ELSE list_filter(range(1, 1 + len(held)), lambda place: held[place] IS NULL) END
                  AS missing,
       places, member, home, stands_for, row_count
FROM _duckanon_held;
