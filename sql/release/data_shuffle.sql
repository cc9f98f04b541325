-- anon.data_shuffle: every column keeps exactly its values, rearranged to the ranks of a normal sample with the table's
-- rank correlations. It keeps distributions exactly, rank correlations nearly, and nothing else.
-- Each value of each column is released as it is, those that one person alone has included: code them first.
--     nulls, seed  as in anon.svd_swap
--     (Thesis, Section 2.3.3: synthetic-guided swapping)
-- test: tests/release/data_shuffle.test
-- needs: python
CREATE OR REPLACE MACRO anon.data_shuffle(tbl, cols, nulls := 'error', seed := NULL) AS TABLE
FROM anon._unpack(anon._run_data_shuffle(anon._pack('anon.data_shuffle', tbl, cols, seed),
                                         {'nulls': nulls, 'seed': seed}),
                  tbl, cols);
COMMENT ON MACRO TABLE anon.data_shuffle IS
    'Rearranges every column to the ranks of a normal sample: '
    'keeps distributions exactly and rank correlations nearly.';
