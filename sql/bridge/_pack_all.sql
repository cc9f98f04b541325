-- anon._pack_all: like anon._pack, with all columns of the table; only the names in `cols` are checked.
-- needs: python
CREATE OR REPLACE MACRO anon._pack_all(caller, tbl, cols) AS
    anon._tickets(anon._checked(caller, tbl, cols), '', NULL, true);
