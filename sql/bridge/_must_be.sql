-- anon._must_be: the sentence that refuses an argument: which function, which parameter, what it must be, what was got.
CREATE OR REPLACE MACRO anon._must_be(caller, parameter, must_be, got) AS
    concat(caller, ': ', parameter, ' must be ', must_be, '; got ', coalesce(CAST(got AS VARCHAR), 'NULL'), '.');
