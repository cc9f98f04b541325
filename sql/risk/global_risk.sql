-- anon.global_risk: how many people of a table would be re-identified in total, and what each column contributes: one
-- row for all columns, where `left_out` is NULL, and one for each column that is left out.
--     expected                    expected re-identifications: the sum of the risks of anon.individual_risk, over the
--                                 people
--     risk                        their share of the people
--     household_expected, household_risk  the same for the risk of a person's household; NULL without `household`
--     threshold                   the individual risk to which all larger ones would have to be reduced, so that risk
--                                 becomes `target`: the mean of least(risk, threshold) is the target. NULL: risk is at
--                                 most the target already, or there is none
--     weight, population, household, person, method, nulls, alpha  as in anon.individual_risk
--     target                      share of the people that is acceptable, such as 0.03; NULL: no threshold is computed
--                                 [a number between 0 and 1, or NULL]
-- A person with several rows has the largest of their risks, and of those of their households.
-- (Franconi and Polettini 2004; mu-Argus takes the largest risk that occurs below this threshold, if any does)
-- promises: Between(0, 1, 'risk', 'household_risk'), CountsPeople('expected', 'risk'), InvariantUnder(*TABLE, 'types')
-- test: tests/risk/global_risk.test
CREATE OR REPLACE MACRO anon.global_risk(
    tbl, cols, weight := NULL, population := NULL, household := NULL, person := NULL, method := 'exact',
    nulls := 'value', alpha := 1, target := NULL
) AS TABLE
WITH _duckanon_records AS NOT MATERIALIZED (
    FROM anon._risk_records('anon.global_risk', CASE WHEN target IS NULL THEN tbl
                                ELSE anon._checked_open_fraction('anon.global_risk', 'target', target, tbl) END,
                            cols, weight, population, household, person, method, nulls, alpha)
), _duckanon_cells AS MATERIALIZED (                            -- rows that are alike to an attacker
    SELECT any_value(missing) AS missing, any_value(places) AS places, member, home,
           CASE WHEN person IS NULL THEN fsum(stands_for) ELSE max(stands_for) END AS stands_for,
           sum(row_count)::BIGINT AS row_count
    FROM _duckanon_records GROUP BY class, member, home
), _duckanon_placed AS (
    SELECT *, list_aggregate(places, 'bit_xor') AS whole
    FROM query_table(CASE WHEN person IS NULL AND household IS NULL AND nulls <> 'any' THEN '_duckanon_records'
                          ELSE '_duckanon_cells' END)
), _duckanon_left_out AS (
    SELECT unnest(CASE WHEN len(cols) > 1 THEN range(len(cols) + 1) ELSE [0] END) AS left_out
), _duckanon_moved AS MATERIALIZED (                            -- once with all columns, once without each
    SELECT left_out, hash(left_out, xor(whole, coalesce(_placed.places[left_out], 0))) AS class, member, home,
           stands_for, row_count,
           CASE WHEN nulls = 'any'                              -- a column of its own says what is left out
                     THEN list_transform(list_filter(missing, lambda place: place <> left_out), lambda place: 1 + place)
               END AS missing,
           CASE WHEN nulls = 'any'
                     THEN [hash(left_out)] || list_transform(range(1, 1 + len(_placed.places)), lambda place:
                              CASE WHEN place = left_out THEN 0::UBIGINT ELSE _placed.places[place] END) END AS places
    FROM _duckanon_placed AS _placed, _duckanon_left_out
), _duckanon_risks AS MATERIALIZED (
    FROM anon._risk_classes('anon.global_risk', '_duckanon_moved', '_duckanon_cells', population, person, method, nulls,
                            alpha)
), _duckanon_known AS MATERIALIZED (                            -- people, or rows that are alike
    SELECT left_out, member, home, max(risk) AS risk, CASE WHEN person IS NULL THEN sum(row_count) ELSE 1 END AS people
    FROM _duckanon_moved JOIN _duckanon_risks USING (class)
    WHERE person IS NULL OR member IS NOT NULL
    GROUP BY left_out, member, home, CASE WHEN person IS NULL THEN class END
), _duckanon_households AS (
    SELECT left_out, home, 1 - product(pow(1 - risk, people)) AS household_risk
    FROM _duckanon_known WHERE home IS NOT NULL GROUP BY left_out, home
), _duckanon_people_levels AS (
    SELECT left_out, risk, sum(people) AS people, fsum(risk * people) AS expected
    FROM (SELECT left_out, max(risk) AS risk, CASE WHEN person IS NULL THEN sum(people) ELSE 1 END AS people
          FROM _duckanon_known GROUP BY left_out, member, CASE WHEN person IS NULL THEN risk END)
    GROUP BY left_out, risk
), _duckanon_kinds AS MATERIALIZED (                            -- rows are people: classes of one size have one risk
    SELECT *, hash(row_count, stands_for) AS class
    FROM (SELECT left_out, row_count, stands_for, count(*) AS classes
          FROM (SELECT (class & CASE WHEN len(cols) < 256 THEN 255 ELSE 65535 END::UBIGINT)::BIGINT AS left_out,
                       count(*) AS row_count,
                       CASE WHEN weight IS NOT NULL THEN fsum(stands_for) END AS stands_for
                FROM (SELECT (xor(whole, coalesce(places[left_out], 0))
                              & ~CASE WHEN len(cols) < 256 THEN 255 ELSE 65535 END::UBIGINT)
                             | left_out::UBIGINT AS class, stands_for  -- one number is grouped faster than two
                      FROM _duckanon_placed, _duckanon_left_out)
                GROUP BY class)
          GROUP BY ALL)
), _duckanon_sizes AS (
    SELECT DISTINCT class, row_count, stands_for, NULL::UBIGINT AS member FROM _duckanon_kinds
), _duckanon_everyone AS (
    SELECT classes * row_count AS row_count, NULL::UBIGINT AS member FROM _duckanon_kinds WHERE left_out = 0
), _duckanon_row_levels AS (
    SELECT left_out, risk, sum(classes * row_count) AS people, fsum(risk * classes * row_count) AS expected
    FROM _duckanon_kinds
         JOIN anon._risk_classes('anon.global_risk', '_duckanon_sizes', '_duckanon_everyone', population, person,
                                 method, nulls, alpha) USING (class)
    GROUP BY left_out, risk
), _duckanon_levels AS (
    FROM query_table(CASE WHEN person IS NULL AND household IS NULL AND nulls <> 'any' THEN '_duckanon_row_levels'
                          ELSE '_duckanon_people_levels' END)
), _duckanon_running AS (                                       -- if all above it were brought down to this risk
    SELECT left_out, risk,
           fsum(expected) OVER upwards AS expected_below, sum(people) OVER upwards AS people_below,
           fsum(expected) OVER whole AS all_expected, sum(people) OVER whole AS all_people,
           expected_below + risk * (all_people - people_below) AS capped
    FROM _duckanon_levels
    WINDOW whole AS (PARTITION BY left_out),
           upwards AS (PARTITION BY left_out ORDER BY risk ASC NULLS LAST)
), _duckanon_thresholds AS (
    SELECT left_out, max(all_expected) AS expected, max(all_people) AS people,
           CASE WHEN max(all_expected) > target * max(all_people)
                     THEN coalesce(arg_max((target * all_people - expected_below) / (all_people - people_below), risk)
                                       FILTER (capped <= target * all_people AND people_below < all_people), target)
                END AS threshold
    FROM _duckanon_running GROUP BY left_out
), _duckanon_with_households AS (
    SELECT left_out, fsum(people * risk) AS household_expected
    FROM (SELECT left_out, max(found) AS risk, CASE WHEN person IS NULL THEN sum(people) ELSE 1 END AS people
          FROM (SELECT *, coalesce(household_risk, risk) AS found
                FROM _duckanon_known LEFT JOIN _duckanon_households USING (left_out, home))
          GROUP BY left_out, member, CASE WHEN person IS NULL THEN found END)
    GROUP BY left_out
), _duckanon_without_households AS (
    SELECT left_out, NULL::DOUBLE AS household_expected FROM _duckanon_left_out
), _duckanon_together AS (
    FROM query_table(CASE WHEN household IS NULL THEN '_duckanon_without_households'
                          ELSE '_duckanon_with_households' END)
), _duckanon_names AS (
    SELECT list(column_name ORDER BY place ASC NULLS LAST) AS names
    FROM anon._columns(tbl), anon._names_apart('anon.global_risk', tbl, [])
    WHERE anon._is_among(column_name, cols) AND are_apart
)
SELECT names[left_out] AS left_out, expected, expected / people AS risk,
       household_expected, household_expected / people AS household_risk, threshold
FROM _duckanon_thresholds JOIN _duckanon_together USING (left_out), _duckanon_names
ORDER BY _duckanon_thresholds.left_out ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.global_risk IS
    'Expected re-identifications, by all columns and without each of them, and the threshold for a target risk.';
