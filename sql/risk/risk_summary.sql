-- anon.risk_summary: the most common measures of risk, a row each.
--     measure                     k_anonymity, unique_fraction, expected_reidentifications, global_risk,
--                                 highest_individual_risk, special_unique_fraction; with `sensitive` also l_diversity
--                                 and t_closeness
--     value                       the number
--     threshold                   the common one, from `source`: the minimum of k_anonymity and l_diversity, the
--                                 maximum of the others; NULL where none is common
--     is_within                   whether the value keeps to the threshold
--     meaning                     what the number says, in one sentence
--     source                      where the threshold is from, or which function says more
--     sensitive                   column whose values should not follow from the others; NULL: none [a name, or NULL]
--     weight, population, person, nulls, alpha  as in anon.individual_risk
-- Special uniques are here the rows that one or two columns make unique: anon.special_uniques has larger sets, and the
-- scores. A threshold that is kept says nothing about columns that were not named.
-- promises: InvariantUnder(*TABLE, 'types')
-- test: tests/risk/risk_summary.test
CREATE OR REPLACE MACRO anon.risk_summary(
    tbl, cols, weight := NULL, population := NULL, sensitive := NULL, person := NULL, nulls := 'value', alpha := 1
) AS TABLE
WITH _duckanon_records AS MATERIALIZED (
    FROM anon._risk_records('anon.risk_summary',
                            anon._checked_other('anon.risk_summary', 'sensitive', sensitive, cols, tbl), cols, weight,
                            population, NULL, person, 'exact', nulls, alpha)
    WHERE (SELECT are_apart FROM anon._names_apart('anon.risk_summary', tbl, []))
), _duckanon_risks AS MATERIALIZED (
    FROM anon._risk_classes('anon.risk_summary', '_duckanon_records', '_duckanon_records', population, person, 'exact',
                            nulls, alpha)
), _duckanon_people AS MATERIALIZED (                           -- rows that are alike, or people
    SELECT max(risk) AS risk, min(sample_frequency) AS frequency, bool_or(_pairs.class IS NOT NULL) AS is_special,
           CASE WHEN person IS NULL THEN sum(row_count) ELSE 1 END AS people
    FROM _duckanon_records JOIN _duckanon_risks USING (class)
         LEFT JOIN anon._pair_uniques('_duckanon_records', person, nulls) AS _pairs USING (class)
    WHERE person IS NULL OR member IS NOT NULL
    GROUP BY member, CASE WHEN person IS NULL THEN class END
), _duckanon_least_people AS (
    SELECT (SELECT min(sample_frequency) FROM _duckanon_risks) AS k, sum(people * is_special::INTEGER) AS special
    FROM _duckanon_people
), _duckanon_kinds AS MATERIALIZED (                            -- rows are people: classes of one size have one risk
    SELECT row_count, stands_for, hash(row_count, stands_for) AS class, count(*) AS classes, NULL::UBIGINT AS member
    FROM (SELECT count(*) AS row_count, CASE WHEN weight IS NOT NULL THEN fsum(stands_for) END AS stands_for
          FROM _duckanon_records GROUP BY class)
    GROUP BY ALL
), _duckanon_everyone AS (
    SELECT classes * row_count AS row_count, member FROM _duckanon_kinds
), _duckanon_rows AS (
    SELECT risk, sample_frequency AS frequency, classes * row_count AS people
    FROM _duckanon_kinds
         JOIN anon._risk_classes('anon.risk_summary', '_duckanon_kinds', '_duckanon_everyone', population, NULL,
                                 'exact', 'value', 1) USING (class)
), _duckanon_pairs AS (                                         -- what one column makes unique two do, too
    SELECT unnest(range(1, greatest(first_place, 2))) AS last_place, first_place
    FROM (SELECT unnest(range(1, 1 + len(cols))) AS first_place) WHERE first_place > 1 OR len(cols) = 1
), _duckanon_alone AS (
    SELECT any_value(class) AS class
    FROM (SELECT xor(places[first_place], CASE WHEN len(cols) = 1 THEN 0 ELSE places[last_place] END) AS pair, class
          FROM _duckanon_records, _duckanon_pairs)
    GROUP BY pair HAVING count(*) = 1
), _duckanon_least_rows AS (
    SELECT (SELECT min(row_count) FROM _duckanon_kinds) AS k, count(DISTINCT class) AS special FROM _duckanon_alone
), _duckanon_figures AS MATERIALIZED (
    SELECT any_value(k)::DOUBLE AS k, sum(people)::DOUBLE AS people,
           coalesce(sum(people) FILTER (frequency < 2), 0) / sum(people) AS unique_fraction,
           any_value(special) / sum(people) AS special_fraction, fsum(people * risk) AS expected,
           max(risk) AS highest_risk,
           CASE WHEN person IS NULL THEN 'row' ELSE 'person' END AS one,
           CASE WHEN person IS NULL THEN 'rows' ELSE 'people' END AS all_of_them
    FROM query_table(CASE WHEN person IS NULL AND nulls <> 'any' THEN '_duckanon_rows' ELSE '_duckanon_people' END),
         query_table(CASE WHEN person IS NULL AND nulls <> 'any' THEN '_duckanon_least_rows'
                          ELSE '_duckanon_least_people' END)
    HAVING anon._checked_rows('anon.risk_summary', count(*), true)
), _duckanon_of_classes AS (
    SELECT unnest([
        {'place': 10, 'measure': 'k_anonymity', 'value': k, 'threshold': 5,
         'meaning': 'The smallest group of ' || all_of_them || ' with the same values has ' || anon._figure(k) || '.',
         'source': 'at least 5 in health data (El Emam and Dankar 2008), 11 in those of US Medicare'},
        {'place': 20, 'measure': 'unique_fraction', 'value': unique_fraction, 'threshold': 0.2,
         'meaning': anon._figure(100 * unique_fraction) || ' % of the ' || all_of_them
                    || ' share their values with nobody in the table.',
         'source': 'from 20 % on columns are a quasi-identifier (Probabilistic Anonymity, Section 2)'},
        {'place': 30, 'measure': 'expected_reidentifications', 'value': expected, 'threshold': NULL::DOUBLE,
         'meaning': 'Of ' || anon._figure(people) || ' ' || all_of_them || ' somebody who knows these columns is '
                    || 'expected to name ' || anon._figure(expected) || ' right.',
         'source': 'none in common use; anon.global_risk says what each column contributes'},
        {'place': 40, 'measure': 'global_risk', 'value': expected / people, 'threshold': 0.03,
         'meaning': 'Whoever matches a ' || one || ' with somebody in the population is right in '
                    || anon._figure(100 * expected / people) || ' % of all cases.',
         'source': 'below 3 % to be shared (OCHA, Humanitarian Data Exchange)'},
        {'place': 50, 'measure': 'highest_individual_risk', 'value': highest_risk, 'threshold': 0.09,
         'meaning': 'For the ' || one || ' at most risk the match is right with a probability of '
                    || anon._figure(100 * highest_risk) || ' %.',
         'source': 'at most 9 % to be public (European Medicines Agency, Policy 0070; Health Canada)'},
        {'place': 60, 'measure': 'special_unique_fraction', 'value': special_fraction, 'threshold': NULL::DOUBLE,
         'meaning': anon._figure(100 * special_fraction) || ' % of the ' || all_of_them
                    || ' are told from all others by one or two columns.',
         'source': 'none in common use; anon.special_uniques shows the rows, with their scores'}
    ], max_depth := 2) FROM _duckanon_figures
), _duckanon_of_values AS (
    SELECT 70 AS place, 'l_diversity' AS measure, l AS value, 2 AS threshold,
           'The group with the fewest different values of ' || sensitive || ' has ' || anon._figure(l) || '.'
               AS meaning,
           'at least 2, as a single value is no secret (Machanavajjhala et al. 2007)' AS source
    FROM anon.l_diversity(tbl, cols, sensitive, nulls := CASE WHEN nulls = 'drop' THEN 'drop' ELSE 'value' END,
                          person := person) AS _diversity
    WHERE _diversity.measure = 'distinct'
    UNION ALL
    SELECT 80, 't_closeness', t, NULL,
           'The values of ' || sensitive || ' in a group are up to ' || anon._figure(t)
               || ' away from those of the table, where 1 is the most.',
           'none in common use; anon.t_closeness names the class'
    FROM anon.t_closeness(tbl, cols, sensitive, nulls := CASE WHEN nulls = 'drop' THEN 'drop' ELSE 'value' END,
                          person := person)
), _duckanon_of_both AS (
    SELECT place, measure, value, threshold, meaning, source FROM _duckanon_of_classes
    UNION ALL
    SELECT place, measure, value, threshold, meaning, source FROM _duckanon_of_values
)
SELECT measure, value::DOUBLE AS value, threshold::DOUBLE AS threshold,
       CASE WHEN measure IN ('k_anonymity', 'l_diversity') THEN value >= threshold
            WHEN measure IN ('global_risk', 'unique_fraction') THEN value < threshold
            ELSE value <= threshold END AS is_within,
       meaning, source
FROM query_table(CASE WHEN sensitive IS NULL THEN '_duckanon_of_classes' ELSE '_duckanon_of_both' END)
ORDER BY place ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.risk_summary IS
    'The most common measures of risk, a row each, with their meaning and a common threshold.';
