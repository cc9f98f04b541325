-- anon.optimal_uncertainty: how uncertain statistics must become at least through boxes of `k` records, and how much
-- they do through the boxes that anon.boxes makes: mean of half-width over desired accuracy.
--     optimum       asymptotically, (n / N) sum of c(x), with the density estimated from the data
--     bounds, cell  of the boxes that are made;  bounds_ratio, cell_ratio   to the optimum. Bounds are smaller than the
--                   optimum would have them, since a box need not reach to its neighbour
--     statistics    as in anon.boxes
--     (Accurate Boxes, Sections II and III)
-- test: tests/release/optimal_uncertainty.test
-- needs: python
CREATE OR REPLACE MACRO anon.optimal_uncertainty(tbl, cols, k, statistics := NULL) AS TABLE
SELECT unnest(_anon_optimal_uncertainty(
           anon._pack('anon.optimal_uncertainty', anon._checked_whole('anon.optimal_uncertainty', 'k', k, 2, tbl), cols, NULL),
           cols, k, statistics), max_depth := 2);
COMMENT ON MACRO TABLE anon.optimal_uncertainty IS
    'How uncertain statistics must become through boxes of k records, and how much they do.';
