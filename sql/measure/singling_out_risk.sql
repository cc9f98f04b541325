-- anon.singling_out_risk: the share of predicates made from the release that single out one original record, against
-- people who are not in the data. One row per mode: 'univariate' (a value that the release has once, or beyond its
-- extremes), 'multivariate' (several columns of one released row).
--     control        a table of people from the same population who are not in `original`; NULL: predicates made at
--                    random are the baseline
--     attacks        predicates per mode
--     predicate_columns   columns in a multivariate predicate
--     hierarchies    of a coarse release, as in anon.generalization_loss: its predicates are cells that one released
--                    row has, in one column or in several together
--     success, control_success, naive_success, risk, risk_lower, risk_upper  as in anon.linkage_risk
--     (Giomi et al., A unified framework for quantifying privacy risk in synthetic data, 2022)
-- test: tests/measure/singling_out_risk.test
-- needs: python
CREATE OR REPLACE MACRO anon.singling_out_risk(
    original, released, cols, control := NULL, attacks := 2000, predicate_columns := 3, hierarchies := NULL,
    seed := NULL
) AS TABLE
SELECT unnest(anon._run_singling_out_risk(anon._pack('anon.singling_out_risk', original, cols, seed),
                                          anon._pack('anon.singling_out_risk', released, cols, seed),
                                          anon._pack_other('anon.singling_out_risk', control, original, cols, seed),
                                          {'meanings': anon._label_meanings('anon.singling_out_risk', original,
                                                                            released, cols, hierarchies),
                                           'attacks': attacks, 'predicate_columns': predicate_columns, 'seed': seed}),
              max_depth := 2);
COMMENT ON MACRO TABLE anon.singling_out_risk IS
    'The share of predicates made from a release that single out one original record, against a control group.';
