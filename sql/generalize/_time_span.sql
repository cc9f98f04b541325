-- anon._time_span: a span of time as places on the number line: from, up to, and whether the end belongs to it (only
-- where it is the beginning too).
CREATE OR REPLACE MACRO anon._time_span(beginning, months, days) AS
    CASE WHEN beginning IS NOT NULL
         THEN {'lower': CAST(epoch_us(beginning) AS DOUBLE),
               'upper': CAST(epoch_us(beginning + to_months(months) + to_days(days)) AS DOUBLE),
               'closed': months = 0 AND days = 0} END;
