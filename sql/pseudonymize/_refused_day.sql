-- anon._refused_day: stops a query from a scalar function that returns what a day's type is.
CREATE OR REPLACE MACRO anon._refused_day(parameter, must_be, got, day) AS
    cast_to_type(anon._refused('anon.shift_date', parameter, must_be, got), day);
