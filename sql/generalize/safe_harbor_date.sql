-- anon.safe_harbor_date: a date by the HIPAA safe harbor, 45 CFR 164.514(b)(2)(i)(C): the year, as text. A year that
-- discloses an age over 89 may not stay either: for a date of birth these are all years 90 or more before the year of
-- `as_of`. They become one category, '<=1936' for a date in 2026. Other dates are changed only where they lie so far
-- back. NULL stays NULL.
--     day    date to generalize [a date or timestamp]
--     as_of  day on which ages are counted; NULL: today. A table that is released again next year then has another
--            category: give the date of the release to fix it [a date, or NULL]
-- promises: FunctionOfValue(), TrueLabels()
-- test: tests/generalize/safe_harbor_date.test
CREATE OR REPLACE MACRO anon.safe_harbor_date(day, as_of := NULL) AS
    CASE WHEN as_of IS NOT NULL AND year(TRY_CAST(as_of AS TIMESTAMP)) IS NULL
              THEN anon._refused('anon.safe_harbor_date', 'as_of', 'a date', as_of)
         WHEN day IS NULL THEN NULL
         WHEN year(TRY_CAST(day AS TIMESTAMP)) IS NULL
              THEN anon._refused_cell('anon.safe_harbor_date', 'day', 'a finite date or timestamp', day)
         -- in the Gregorian calendar: with another one DuckDB takes current_date for a day before Christ
         ELSE list_transform(
                  [coalesce(year(TRY_CAST(as_of AS DATE)), CAST(strftime(now(), '%Y') AS BIGINT)) - 90], lambda last:
                  CASE WHEN year(TRY_CAST(day AS TIMESTAMP)) <= last THEN printf('<=%04d', last)
                       ELSE printf('%04d', year(TRY_CAST(day AS TIMESTAMP))) END)[1] END;
COMMENT ON MACRO anon.safe_harbor_date IS
    'The year of a date, years that disclose an age over 89 as one category (HIPAA safe harbor).';
