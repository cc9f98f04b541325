-- anon.box_weights: with which weights to count the boxes in a statistic: the wider a box, the less it counts. Three
-- rows: 'everything' counts all alike, 'paper' chooses as the papers do, 'corrected' counts the shift too, and has the
-- least total that is found from several starts: never above that of the others and of anon.dismissal. Nothing is
-- applied: the boxes that count less differ from the others, and the estimate moves far.
--     statistic    mean, variance, standard_deviation, covariance, correlation or regression (the target first), of
--                  `cols`
--     threshold    the lambda from which on a box has weight 0
--     weights      the weight of each record of each box; over all records they sum to 1
--     privacy      half-width from the boxes
--     statistical  standard error
--     shift        how far the estimate moves
--     total        the sum of the three
--     (Fuzzy Boxes, Sections II and III; REFERENCES.md, Boxes, points 5 and 8: selection bias, the exact solution)
-- test: tests/release/box_weights.test
-- needs: python
CREATE OR REPLACE MACRO anon.box_weights(boxed, statistic, cols) AS TABLE
SELECT unnest(anon._run_box_weights(anon._pack_boxes('anon.box_weights', boxed, cols),
                                    {'statistic': statistic, 'cols': cols}), max_depth := 2);
COMMENT ON MACRO TABLE anon.box_weights IS
    'With which weights to count boxes in a statistic, and what that costs: width, standard error, shift.';
