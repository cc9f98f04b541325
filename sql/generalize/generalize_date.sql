-- anon.generalize_date: the day, week, month ... that a date or a timestamp falls into, as text that sorts by time:
--     'day' 2024-03-17      'week' 2024-W11 (ISO, with the ISO year)      'month' 2024-03      'quarter' 2024-Q1
--     'half-year' 2024-H1   'year' 2024   '5 years' 2020-2024 (from multiples of five)   'decade' 2020s
--     day    value to generalize; NULL stays NULL [a date or timestamp]
--     level  unit of the calendar [one of 'day', 'week', 'month', 'quarter', 'half-year', 'year', '5 years', 'decade']
-- A timestamp with time zone is read in the time zone of the session. Years have at least four digits (0987);
-- everything before the year 1 is one category, <0001; infinity stays infinity.
-- promises: FunctionOfValue(), TrueLabels()
-- test: tests/generalize/generalize_date.test
CREATE OR REPLACE MACRO anon.generalize_date(day, level) AS
    CASE WHEN coalesce(NOT list_contains(['day', 'week', 'month', 'quarter', 'half-year', 'year', '5 years', 'decade'],
                                         CAST(level AS VARCHAR)), true)
              THEN anon._refused('anon.generalize_date', 'level',
                                 'one of [day, week, month, quarter, half-year, year, 5 years, decade]', level)
         WHEN day IS NULL THEN NULL
         WHEN TRY_CAST(day AS TIMESTAMP) IS NULL
              THEN anon._refused_cell('anon.generalize_date', 'day', 'a date or a timestamp', day)
         WHEN isinf(TRY_CAST(day AS TIMESTAMP)) THEN CAST(day AS VARCHAR)
         WHEN year(TRY_CAST(day AS TIMESTAMP)) < 1 THEN '<0001'
         ELSE CASE CAST(level AS VARCHAR)
                  WHEN 'day' THEN strftime(TRY_CAST(day AS TIMESTAMP), '%Y-%m-%d')
                  WHEN 'week'
                       THEN printf('%04d-W%02d', isoyear(TRY_CAST(day AS TIMESTAMP)), week(TRY_CAST(day AS TIMESTAMP)))
                  WHEN 'month' THEN strftime(TRY_CAST(day AS TIMESTAMP), '%Y-%m')
                  WHEN 'quarter'
                       THEN printf('%04d-Q%d', year(TRY_CAST(day AS TIMESTAMP)), quarter(TRY_CAST(day AS TIMESTAMP)))
                  WHEN 'half-year'
                       THEN printf('%04d-H%d', year(TRY_CAST(day AS TIMESTAMP)),
                                   (quarter(TRY_CAST(day AS TIMESTAMP)) + 1) // 2)
                  WHEN 'year' THEN printf('%04d', year(TRY_CAST(day AS TIMESTAMP)))
                  WHEN '5 years' THEN printf('%04d-%04d', year(TRY_CAST(day AS TIMESTAMP)) // 5 * 5,
                                             year(TRY_CAST(day AS TIMESTAMP)) // 5 * 5 + 4)
                  ELSE printf('%04ds', year(TRY_CAST(day AS TIMESTAMP)) // 10 * 10) END
         END;
COMMENT ON MACRO anon.generalize_date IS
    'The day, week, month, quarter, half-year, year, five years or decade of a date, as text.';
