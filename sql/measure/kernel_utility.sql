-- anon.kernel_utility: whether a release keeps the nonlinear structure: the distributions of original and released
-- records along the kernel principal components of the original, one row per component.
--     eigenvalue, cumulative   the component's variance, and the share of the first ones up to it
--     ks, p_value              the two-sided Kolmogorov-Smirnov test between original and release
--     reference_ks, reference_p_value   the same between original and `reference`, a sample of other people: the
--                  yardstick
--     kernel       'polynomial': (x'y + 1)^degree; 'gaussian': exp(-|x - y|^2 / (2 sigma^2)), sigma the median
--                  distance; 'exponential': exp(x'y / the number of columns)
--     standardize  false leaves numbers (their logarithms) at their own scale, as the Thesis does: then the components
--                  are nearly linear and test little
--     points       compare this many rows of each, drawn at random (the Thesis: 1296); NULL: all
--     hierarchies  of a coarse release, from whose cells values are drawn, as in anon.utility
--     log, special, categories  as in anon.prediction_risk
--     derived      'auto' leaves out columns that follow from others, as in anon.privacy_test
-- Exact up to some thousands of rows, by 500 landmarks (Nystroem) above: linear in the rows.
--     (Thesis, Section 3.2, Table 5.1; the kernel is centred)
-- test: tests/measure/kernel_utility.test
-- needs: python
CREATE OR REPLACE MACRO anon.kernel_utility(
    original, released, cols, degree := 4, components := 20, standardize := true, kernel := 'polynomial',
    reference := NULL, points := NULL, hierarchies := NULL, log := NULL, special := 'auto',
    categories := NULL, derived := 'off', seed := NULL
) AS TABLE
SELECT unnest(anon._run_kernel_utility(anon._pack('anon.kernel_utility', original, cols, seed),
                                       anon._pack('anon.kernel_utility', released, cols, seed),
                                       anon._pack_other('anon.kernel_utility', reference, original, cols, seed),
                                       {'meanings': anon._label_meanings('anon.kernel_utility', original, released,
                                                                         cols, hierarchies),
                                        'degree': degree, 'components': components, 'standardize': standardize,
                                        'kernel': kernel, 'points': points, 'log': log, 'special': special,
                                        'categories': categories, 'derived': derived, 'seed': seed}), max_depth := 2);
COMMENT ON MACRO TABLE anon.kernel_utility IS
    'Compares a release with the original along kernel principal components, for structure that is not linear.';
