-- anon._year_as_of: the year of a date, or the current one where there is none, in the Gregorian calendar whatever
-- calendar is set: with another one DuckDB takes current_date for a day before Christ.
CREATE OR REPLACE MACRO anon._year_as_of(as_of) AS
    coalesce(year(TRY_CAST(as_of AS DATE)), CAST(strftime(now(), '%Y') AS BIGINT));
