-- anon._numbers: a list of numbers as doubles, NULL for what is none. Through their text, so that every type binds.
CREATE OR REPLACE MACRO anon._numbers(list) AS TRY_CAST(CAST(list AS VARCHAR) AS DOUBLE[]);
