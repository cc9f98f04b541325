-- anon._short_number: a number as a sentence says it: with four decimals at most, and none where it is whole.
CREATE OR REPLACE MACRO anon._short_number(number) AS
    rtrim(rtrim(format('{:.4f}', CAST(number AS DOUBLE)), '0'), '.');
