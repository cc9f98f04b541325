-- anon.dismissal: which boxes to leave out of a statistic: wide boxes make it uncertain, and so do few records. Three
-- rows: 'everything' leaves none out, 'paper' chooses as the papers do, 'corrected' counts the shift too. Nothing is
-- applied: the boxes that are left out differ from the others, and the estimate moves far.
--     statistic    mean, variance, standard_deviation, covariance, correlation or regression (the target first), of
--                  `cols`
--     threshold    boxes that contribute more than this to the half-width are left out
--     dismissed    the numbers of the boxes that are left out
--     privacy      half-width from the boxes
--     statistical  standard error
--     shift        how far the estimate moves
--     total        the sum of the three
--     (Accurate Boxes, Section III; REFERENCES.md, Boxes, points 4 and 5: the exact solution, selection bias)
-- test: tests/release/dismissal.test
-- needs: python
CREATE OR REPLACE MACRO anon.dismissal(boxed, statistic, cols) AS TABLE
SELECT unnest(anon._run_dismissal(anon._pack_boxes('anon.dismissal', boxed, cols),
                                  {'statistic': statistic, 'cols': cols}), max_depth := 2);
COMMENT ON MACRO TABLE anon.dismissal IS
    'Which boxes to leave out of a statistic, and what that costs: width, standard error, shift.';
