-- anon._refused: stops a query from a scalar function that returns text, as anon._refuse does from one that returns a
-- number: which function, which argument, what it must be, what was got.
CREATE OR REPLACE MACRO anon._refused(caller, parameter, must_be, got) AS
    CAST(anon._refuse(caller || ': ' || parameter || ' must be ' || must_be || '; got '
                             || coalesce(CAST(got AS VARCHAR), 'NULL') || '.') AS VARCHAR);
