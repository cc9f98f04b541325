-- anon._interval: an interval of the number line; where a bound is NULL it has no end on that side.
CREATE OR REPLACE MACRO anon._interval(lower_bound, lower_closed, upper_bound, upper_closed) AS
    {'lower': CAST(lower_bound AS DOUBLE), 'lower_closed': lower_closed,
     'upper': CAST(upper_bound AS DOUBLE), 'upper_closed': upper_closed};
