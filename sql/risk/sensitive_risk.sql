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
-- test: tests/risk/sensitive_risk.test
CREATE OR REPLACE MACRO anon.sensitive_risk(tbl, cols, sensitive, c := 2, nulls := 'value', person := NULL) AS TABLE
WITH _duckanon_members AS MATERIALIZED (
    FROM anon._sensitive_members('anon.sensitive_risk', anon._checked_ratio('anon.sensitive_risk', 'c', c, tbl), cols,
                                 sensitive, nulls, person)
), _duckanon_scores AS MATERIALIZED (                           -- the larger, the worse
    SELECT class, class_people,
           unnest(['basic_beta_likeness', 'enhanced_beta_likeness', 'delta_disclosure', 'recursive_l', 'people_l',
                   'people_entropy_l']) AS measure,
           unnest([basic_beta, enhanced_beta, delta, -recursive_l, -people_l, -people_entropy]) AS score
    FROM anon._sensitive_measures('_duckanon_members', c, person)
), _duckanon_worst AS MATERIALIZED (
    SELECT measure, max(score) AS score FROM _duckanon_scores
    GROUP BY measure
    HAVING anon._checked_rows('anon.sensitive_risk', count(*), true)
), _duckanon_shown AS MATERIALIZED (                            -- of those equally bad the one with the most is shown
    SELECT measure, class, class_people
    FROM _duckanon_scores JOIN _duckanon_worst USING (measure)
    WHERE round(_duckanon_scores.score, 12) = round(_duckanon_worst.score, 12)
    QUALIFY class_people = max(class_people) OVER (PARTITION BY measure)
), _duckanon_rows AS (
    SELECT measure, any_value(score) AS score, min(named) AS worst_class, any_value(class_people) AS worst_class_size
    FROM _duckanon_worst LEFT JOIN _duckanon_shown USING (measure)
         LEFT JOIN anon._class_names(tbl, cols, nulls, '_duckanon_shown') USING (class)
    GROUP BY measure
    HAVING (SELECT anon._checked_rows('anon.sensitive_risk', count(*), true) FROM _duckanon_members)
)
SELECT measure, abs(score) AS value, worst_class, worst_class_size,
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
