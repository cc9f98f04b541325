-- anon.sensitive_risk_classes: the measures of anon.sensitive_risk for every class, the worst first.
--     sensitive, c, nulls, person  as in anon.sensitive_risk
-- promises: InvariantUnder(*TABLE, 'types')
-- test: tests/risk/sensitive_risk_classes.test
CREATE OR REPLACE MACRO anon.sensitive_risk_classes(
    tbl, cols, sensitive, c := 2, nulls := 'value', person := NULL
) AS TABLE
WITH _duckanon_members AS MATERIALIZED (
    FROM anon._sensitive_members(
             'anon.sensitive_risk_classes',
             anon._checked_ratio('anon.sensitive_risk_classes', 'c', c,
                 anon._checked_apart('anon.sensitive_risk_classes', cols,
                                     ['class_size', 'basic_beta', 'enhanced_beta', 'delta_disclosure', 'recursive_l',
                                      'people_l', 'people_entropy_l'], tbl)),
             cols, sensitive, nulls, person)
), _duckanon_classes AS MATERIALIZED (
    FROM anon._sensitive_measures('_duckanon_members', c, person, true)
)
SELECT unnest(named), class_people AS class_size, basic_beta, enhanced_beta, delta AS delta_disclosure, recursive_l,
       people_l, people_entropy AS people_entropy_l
FROM _duckanon_classes LEFT JOIN anon._class_names(tbl, cols, nulls, '_duckanon_classes') USING (class)
ORDER BY round(basic_beta, 12) DESC NULLS LAST, class_size DESC NULLS LAST, named ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.sensitive_risk_classes IS
    'Beta-likeness, delta-disclosure, recursive l and l over people of every class, the worst first.';
