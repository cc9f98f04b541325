-- anon._pack: the chosen columns of a table as one value that a Python function can take (anon._tickets).
-- needs: python
CREATE OR REPLACE MACRO anon._pack(caller, tbl, cols, seed) AS
    anon._tickets(anon._checked(caller, tbl, cols), cols, seed, true);
