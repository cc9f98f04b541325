-- anon._calendar_cell: where a unit of the calendar begins and ends, read from the labels of anon.generalize_date:
-- 2024-03-17, 2024-W11, 2024-03, 2024-Q1, 2024-H1, 2024, 2020-2024, 2020s, and moments such as 2024-03-17 10:00:00,
-- which end where they begin. NULL for everything else.
CREATE OR REPLACE MACRO anon._calendar_cell(cell) AS
    list_transform(
        [CASE WHEN regexp_full_match(cell, '\d{4,6}-\d\d-\d\d( \(BC\))?')
                   THEN {'beginning': TRY_CAST(cell AS TIMESTAMP), 'months': 0, 'days': 1}
              WHEN regexp_full_match(cell, '\d{4,6}-\d\d-\d\d[ T].+')
                   THEN {'beginning': make_timestamp(CAST(anon._number_of(cell, 'date') AS BIGINT)), 'months': 0,
                         'days': 0}
              WHEN regexp_full_match(cell, '\d{4,6}-W\d\d')
                   THEN {'beginning': try_strptime(cell || '-1', '%G-W%V-%u'), 'months': 0, 'days': 7}
              ELSE list_transform(
                  [regexp_extract(cell, '^(\d{4,6})(?:(s)|-Q([1-4])|-H([12])|-(\d\d)|-(\d{4,6}))?$',
                                  ['year', 'decade', 'quarter', 'half', 'month', 'last_year'])],
                  lambda found: {
                      'beginning': TRY_CAST(found.year || '-'
                          || CASE WHEN found.month <> '' THEN found.month
                                  WHEN found.quarter <> '' THEN (['01', '04', '07', '10'])[found.quarter::INTEGER]
                                  WHEN found.half = '2' THEN '07' ELSE '01' END || '-01' AS TIMESTAMP),
                      'months': CASE WHEN found.month <> '' THEN 1 WHEN found.quarter <> '' THEN 3
                                     WHEN found.half <> '' THEN 6 WHEN found.decade <> '' THEN 120
                                     WHEN found.last_year <> ''
                                     THEN 12 * (found.last_year::INTEGER - found.year::INTEGER + 1) ELSE 12 END,
                      'days': 0})[1] END],
        lambda span: CASE WHEN span.beginning IS NOT NULL
                          THEN {'lower': CAST(epoch_us(span.beginning) AS DOUBLE),
                                'upper': CAST(epoch_us(span.beginning + to_months(span.months) + to_days(span.days))
                                              AS DOUBLE),
                                'closed': span.months = 0 AND span.days = 0} END)[1];
