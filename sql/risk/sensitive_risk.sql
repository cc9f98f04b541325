-- anon.sensitive_risk: what an attacker who knows a person's class learns about a sensitive column, in the worst class,
-- by criteria besides anon.l_diversity and anon.t_closeness: one row per measure. q is a value's share of the class's
-- people, p its share of all people:
--     basic_beta_likeness         largest (q - p) / p of a value that occurs in the class: how much likelier it becomes
--     enhanced_beta_likeness      the same; infinite where it exceeds -ln p for some value, so that no beta allows it
--                                 (both Cao and Karras 2012)
--     delta_disclosure            largest |log2(q / p)| of a value that occurs in the class (Brickell and Shmatikov
--                                 2008, who require all values of the table; ARX and this leave out those that do not
--                                 occur)
--     recursive_l                 largest l for which the table is recursively (c, l)-diverse, at least 1: r1 < c (rl +
--                                 ... + rm), r1 >= r2 >= ... the counts of a class's values (Machanavajjhala et al.
--                                 2007)
--     people_l                    1 / the largest q
--     people_entropy_l            exp of the entropy of a class's values, where every person has one vote
--     value, worst_class, worst_class_size  the measure, and where it is worst; of several, in the largest
--     meaning                     what it says, in words
--     sensitive                   sensitive column; a NULL in it is a value [a name]
--     c                           for recursive_l: how many times the rarer values the most frequent one may outweigh
--                                 [a number above 0]
--     nulls                       as in anon.l_diversity
--     person                      column that identifies the person of a row: shares are then of different people, of
--                                 whom one may have several values: where all have flu q is 1, whatever else they have.
--                                 A row whose person is NULL counts as nobody, and a class of nobody has the worst
--                                 value. NULL: every row is a person [a name, or NULL]
-- All classes: anon.sensitive_risk_classes.
-- promises: InvariantUnder(*TABLE, 'types')
-- test: tests/risk/sensitive_risk.test
CREATE OR REPLACE MACRO anon.sensitive_risk(tbl, cols, sensitive, c := 2, nulls := 'value', person := NULL) AS TABLE
WITH _duckanon_members AS MATERIALIZED (
    FROM anon._sensitive_members('anon.sensitive_risk', anon._checked_ratio('anon.sensitive_risk', 'c', c, tbl), cols,
                                 sensitive, nulls, person)
), _duckanon_classes AS MATERIALIZED (
    FROM anon._sensitive_measures('_duckanon_members', c, person, false)
), _duckanon_worst AS MATERIALIZED (
    SELECT max(basic_beta) AS worst_basic, max(enhanced_beta) AS worst_enhanced, max(delta) AS worst_delta,
           min(recursive_l) AS worst_recursive, min(people_l) AS worst_l, min(people_entropy) AS worst_entropy
    FROM _duckanon_classes
    HAVING anon._checked_rows('anon.sensitive_risk', count(*), true)
), _duckanon_bad AS NOT MATERIALIZED (                           -- what sums in another order change is none
    SELECT class, class_people, basic_beta >= worst_basic - 5e-13 AS is_basic,
           enhanced_beta >= worst_enhanced - 5e-13 AS is_enhanced, delta >= worst_delta - 5e-13 AS is_delta,
           recursive_l = worst_recursive AS is_recursive, people_l <= worst_l + 5e-13 AS is_l,
           people_entropy <= worst_entropy + 5e-13 AS is_entropy
    FROM _duckanon_classes, _duckanon_worst
), _duckanon_most AS (                                          -- of those equally bad the one with the most is shown
    SELECT max(class_people) FILTER (is_basic) AS most_basic, max(class_people) FILTER (is_enhanced) AS most_enhanced,
           max(class_people) FILTER (is_delta) AS most_delta, max(class_people) FILTER (is_recursive) AS most_recursive,
           max(class_people) FILTER (is_l) AS most_l, max(class_people) FILTER (is_entropy) AS most_entropy
    FROM _duckanon_bad
), _duckanon_shown AS MATERIALIZED (
    SELECT class, class_people,
           unnest(['basic_beta_likeness', 'enhanced_beta_likeness', 'delta_disclosure', 'recursive_l', 'people_l',
                   'people_entropy_l']) AS measure,
           unnest([shows_basic, shows_enhanced, shows_delta, shows_recursive, shows_l, shows_entropy]) AS is_shown
    FROM (SELECT class, class_people, is_basic AND class_people = most_basic AS shows_basic,
                 is_enhanced AND class_people = most_enhanced AS shows_enhanced,
                 is_delta AND class_people = most_delta AS shows_delta,
                 is_recursive AND class_people = most_recursive AS shows_recursive,
                 is_l AND class_people = most_l AS shows_l, is_entropy AND class_people = most_entropy AS shows_entropy
          FROM _duckanon_bad, _duckanon_most)
    WHERE shows_basic OR shows_enhanced OR shows_delta OR shows_recursive OR shows_l OR shows_entropy
), _duckanon_scores AS (
    SELECT unnest(['basic_beta_likeness', 'enhanced_beta_likeness', 'delta_disclosure', 'recursive_l', 'people_l',
                   'people_entropy_l']) AS measure,
           unnest([worst_basic, worst_enhanced, worst_delta, worst_recursive, worst_l, worst_entropy]) AS score
    FROM _duckanon_worst
), _duckanon_rows AS (
    SELECT measure, any_value(score) AS score, min(named) AS worst_class, any_value(class_people) AS worst_class_size
    FROM _duckanon_scores LEFT JOIN (FROM _duckanon_shown WHERE is_shown) AS shown USING (measure)
         LEFT JOIN anon._class_names(tbl, cols, nulls, '_duckanon_shown') USING (class)
    GROUP BY measure
)
SELECT measure, score AS value, worst_class, worst_class_size,
       CASE measure
           WHEN 'basic_beta_likeness'
                THEN 'By so many times its share of the table a value is more frequent in a class, at most.'
           WHEN 'enhanced_beta_likeness'
                THEN CASE WHEN isinf(score) THEN 'No beta is kept: some value becomes likelier than its rarity allows.'
                          ELSE 'The same; frequent values keep the stricter bound, too.' END
           WHEN 'delta_disclosure'
                THEN 'So many doublings or halvings of its share of the table a value has in a class, at most.'
           WHEN 'recursive_l' THEN 'The largest l of recursive (' || CAST(c AS VARCHAR) || ', l)-diversity.'
           WHEN 'people_l' THEN '1 / the share of a class''s people who have its most frequent value.'
           ELSE 'As many equally frequent values would leave one as unsure, each person having one vote.' END AS meaning
FROM _duckanon_rows
ORDER BY list_position(['basic_beta_likeness', 'enhanced_beta_likeness', 'delta_disclosure', 'recursive_l', 'people_l',
                        'people_entropy_l'], measure) ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.sensitive_risk IS
    'Beta-likeness, delta-disclosure, recursive l and l over people of a sensitive column, each with its worst class.';
