-- anon.swap: every column of `cols` permuted on its own, uniformly at random. It keeps each column's distribution
-- exactly and no relation between the columns: the oldest swapping method (Dalenius and Reiss 1982), and the baseline
-- that every other release is measured against.
-- Each value of each column is released as it is, those that one person alone has included: code them first.
--     seed  NULL draws from the operating system; a number makes the release repeatable, and whoever knows it can undo
--           it
-- test: tests/release/swap.test
-- needs: python
CREATE OR REPLACE MACRO anon.swap(tbl, cols, seed := NULL) AS TABLE
FROM anon._unpack(anon._run_swap(anon._pack('anon.swap', tbl, cols, seed), {'seed': seed}), tbl, cols);
COMMENT ON MACRO TABLE anon.swap IS
    'Permutes each column independently: keeps every distribution, and no relation between columns.';
