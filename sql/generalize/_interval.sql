-- anon._interval: an interval of the number line; a bound of NULL is none.
CREATE OR REPLACE MACRO anon._interval(lower_bound, lower_closed, upper_bound, upper_closed) AS
    {'lower': CAST(lower_bound AS DOUBLE), 'lower_closed': lower_closed,
     'upper': CAST(upper_bound AS DOUBLE), 'upper_closed': upper_closed};
