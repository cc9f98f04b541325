-- anon.kernel_components: original and released records along the kernel principal components of the original, for a
-- plot of nonlinear structure: where the release has points that the original has not, or none where it has some.
--     source       'original' or 'released'
--     projections  a record's place on each component, the one of largest variance first; x and y of a plot are
--                  projections[1] and projections[2]
--     components   how many
--     points       this many records of each table, drawn at random
--     degree, standardize, kernel, hierarchies, log, special, categories, derived   as in anon.kernel_utility, which
--                  puts numbers to the picture
-- The places of originals are those of real people: the plot is for whoever holds the original.
--     (Thesis, Section 3.2, Figure 3-1; the kernel is centred)
-- test: tests/measure/kernel_components.test
-- needs: python
CREATE OR REPLACE MACRO anon.kernel_components(
    original, released, cols, degree := 4, components := 2, standardize := true, kernel := 'polynomial',
    points := 1000, hierarchies := NULL, log := NULL, special := 'auto', categories := NULL,
    derived := 'off', seed := NULL
) AS TABLE
SELECT unnest(anon._run_kernel_components(anon._pack('anon.kernel_components', original, cols, seed),
                                          anon._pack('anon.kernel_components', released, cols, seed),
                                          {'meanings': anon._label_meanings('anon.kernel_components', original,
                                                                            released, cols, hierarchies),
                                           'degree': degree, 'components': components, 'standardize': standardize,
                                           'kernel': kernel, 'points': points, 'log': log, 'special': special,
                                           'categories': categories, 'derived': derived, 'seed': seed}),
              max_depth := 2);
COMMENT ON MACRO TABLE anon.kernel_components IS
    'Original and released records along kernel principal components, for a plot of structure that is not linear.';
