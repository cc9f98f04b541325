-- anon.linkage_risk: how much better an attacker who knows some columns of a person predicts others from the release,
-- than for people who are not in the data; one row per secret column.
--     known_cols, secret_cols   what is known, and what is to be found out: the nearest released row's value is taken
--     control        a table of people from the same population who are not in `original`; NULL: a naive guess is the
--                    baseline
--     success, control_success, naive_success   the shares predicted rightly (numbers: within `tolerance` of the
--                    column's range) for the people in the data, for those of control, and by taking the secret of a
--                    random released row
--     risk           (success - control_success) / (1 - control_success)
--     risk_lower, risk_upper   its 95 % interval
--     attacks        how many records are attacked at most, drawn at random
--     hierarchies    of a coarse release, as in anon.generalization_loss: the attacker looks among the rows whose cells
--                    hold what is known (among all where there is none), takes the nearest by the distance of
--                    anon.prediction_risk, and draws the secret from its cell
--     log, special, categories   as in anon.prediction_risk
--     derived        'auto' leaves known columns out that follow from other known ones, so that these do not count
--                    twice; 'off' keeps them. Secrets stay: one that follows from known columns is told of everybody,
--                    and control shows that it is no leak
--     (Giomi et al., A unified framework for quantifying privacy risk in synthetic data, 2022)
-- test: tests/measure/linkage_risk.test
-- needs: python
CREATE OR REPLACE MACRO anon.linkage_risk(
    original, released, known_cols, secret_cols, control := NULL, attacks := 2000, tolerance := 0.05,
    hierarchies := NULL, log := NULL, special := 'auto', categories := NULL, derived := 'off',
    seed := NULL
) AS TABLE
SELECT unnest(anon._run_linkage_risk(
           anon._pack('anon.linkage_risk', original, anon._with_columns(known_cols, secret_cols), seed),
           anon._pack('anon.linkage_risk', released, anon._with_columns(known_cols, secret_cols), seed),
           anon._pack_other('anon.linkage_risk', control, original, anon._with_columns(known_cols, secret_cols), seed),
           {'meanings': anon._label_meanings('anon.linkage_risk', original, released,
                                             anon._with_columns(known_cols, secret_cols), hierarchies),
            'known_cols': known_cols, 'secret_cols': secret_cols, 'attacks': attacks, 'tolerance': tolerance,
            'log': log, 'special': special, 'categories': categories, 'derived': derived,
            'seed': seed}), max_depth := 2);
COMMENT ON MACRO TABLE anon.linkage_risk IS
    'How much better secret columns are predicted from a release for its own people than for others.';
