-- anon._identity: a table through Python and back, unchanged. The tests prove the bridge with it, and `make bench`
-- measures the cost that every Python function pays.
-- needs: python
CREATE OR REPLACE MACRO anon._identity(tbl, cols, seed := NULL) AS TABLE
FROM anon._unpack(anon._run_identity(anon._pack('anon._identity', tbl, cols, seed), NULL), tbl, cols);
