-- anon.safe_harbor_date: a date by the HIPAA safe harbor, 45 CFR 164.514(b)(2)(i)(C): the year, as text. A year that
-- discloses an age over 89 may not stay either: for a date of birth these are all years 90 or more before the year of
-- `as_of`. They become one category, '<=1936' for a date in 2026. Other dates are changed only where they lie so far
-- back. NULL stays NULL.
--     day    date to generalize [a date or timestamp]
--     as_of  day on which ages are counted; NULL: today. A table that is released again next year then has another
--            category: give the date of the release to fix it [a date, or NULL]
-- test: tests/generalize/safe_harbor_date.test
CREATE OR REPLACE MACRO anon.safe_harbor_date(day, as_of := NULL) AS
    CASE WHEN as_of IS NOT NULL AND year(TRY_CAST(as_of AS TIMESTAMP)) IS NULL
              THEN anon._refused('anon.safe_harbor_date', 'as_of', 'a date', as_of)
         WHEN day IS NULL THEN NULL
         WHEN year(TRY_CAST(day AS TIMESTAMP)) IS NULL
              THEN anon._refused_cell('anon.safe_harbor_date', 'day', 'a finite date or timestamp', day)
         WHEN year(TRY_CAST(day AS TIMESTAMP)) <= anon._year_as_of(as_of) - 90
              THEN printf('<=%04d', anon._year_as_of(as_of) - 90)
         ELSE printf('%04d', year(TRY_CAST(day AS TIMESTAMP))) END;
COMMENT ON MACRO anon.safe_harbor_date IS
    'The year of a date, years that disclose an age over 89 as one category (HIPAA safe harbor).';
