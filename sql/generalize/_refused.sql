-- anon._refused: stops a query from a scalar function that returns text, as anon._refuse does from one that returns a
-- number. The sentence has the argument as the statement writes it (alias), since it may be a column of people: with
-- two arguments in the wrong order, anon.generalize_date('month', day), their values would be in the message.
CREATE OR REPLACE MACRO anon._refused(caller, parameter, must_be, got) AS
    CAST(anon._refuse(concat(caller, ': ', parameter, ' must be ', must_be, '; got ', alias(got), '.')) AS VARCHAR);
