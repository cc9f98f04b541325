-- anon.optimal_uncertainty: how uncertain statistics must become, at the least, through boxes of `k` records, and how
-- uncertain they become through the boxes that anon.boxes makes: the mean of half-width over desired accuracy.
--     optimum       asymptotically, (n / N) sum of c(x) over the N records in n columns, with c as in
--                   anon.box_halfwidths and the density estimated from the data
--     parts, bounds, cell  of the boxes that are made with box := 'parts', 'bounds' and 'cell', with their ends as they
--                   are released, rounded to the column's type
--     parts_ratio, bounds_ratio, cell_ratio   the same over the optimum. Parts and bounds may be smaller than the
--                   optimum, since their boxes need not reach to their neighbours
--     statistics    as in anon.boxes
--     (Accurate Boxes, Sections II and III)
-- test: tests/release/optimal_uncertainty.test
-- needs: python
CREATE OR REPLACE MACRO anon.optimal_uncertainty(tbl, cols, k, statistics := NULL) AS TABLE
SELECT unnest(anon._run_optimal_uncertainty(
           anon._pack('anon.optimal_uncertainty', anon._checked_whole('anon.optimal_uncertainty', 'k', k, 2, tbl), cols,
                      NULL),
           {'cols': cols, 'k': k, 'statistics': statistics}), max_depth := 2);
COMMENT ON MACRO TABLE anon.optimal_uncertainty IS
    'How uncertain statistics must become through boxes of k records, and how much they do.';
