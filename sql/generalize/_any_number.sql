-- anon._any_number: the place of a value, given as text, on the number line, where it may be a number or a date.
CREATE OR REPLACE MACRO anon._any_number(value) AS
    coalesce(TRY_CAST(value AS DOUBLE), anon._number_of(value, 'date'));
