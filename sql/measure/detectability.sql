-- anon.detectability: how well boosted trees tell released rows from original ones: 0.5 not at all, 1 every time.
--     comparison      'released': with the original; 'reference': between two random halves of the original
--     auc             by cross-validation
--     standard_error  of the auc
--     rows_each       rows of each side, 20,000 at most
--     hierarchies     of a coarse release, from whose cells values are drawn, as in anon.utility
--     categories      numbers that are categories; NULL for whole ones of at most twelve values
-- test: tests/measure/detectability.test
-- needs: python
CREATE OR REPLACE MACRO anon.detectability(
    original, released, cols, hierarchies := NULL, categories := [], seed := NULL
) AS TABLE
SELECT unnest(anon._run_detectability(anon._pack('anon.detectability', original, cols, seed),
                                      anon._pack('anon.detectability', released, cols, seed),
                                      {'meanings': anon._label_meanings('anon.detectability', original, released, cols,
                                                                        hierarchies),
                                       'categories': categories, 'seed': seed}), max_depth := 2);
COMMENT ON MACRO TABLE anon.detectability IS
    'How well boosted trees tell released rows from original ones.';
