-- anon._refused: stops a query from a scalar function that returns text, as anon._refuse does from one that returns a
-- number.
CREATE OR REPLACE MACRO anon._refused(caller, parameter, must_be, got) AS
    CAST(anon._refuse(anon._must_be(caller, parameter, must_be, got)) AS VARCHAR);
