-- anon._sort_keys: the orders that a value may be sorted in: a list of {'key', 'text'}, of which one is NULL. Numbers
-- and dates have one. Text has six: its own, the number that it writes ('EUR 1200.50'), and the date: year, day or
-- month first, or with the month's name.
-- (duckanon._core.privacy.narrowing.list_sort_keys is the same in Python)
CREATE OR REPLACE MACRO anon._sort_keys(value) AS
    CASE WHEN anon._kind(typeof(value)) IN ('numeric', 'date', 'boolean')
         THEN [{'key': anon._plan_number(value), 'text': NULL::VARCHAR}]
         ELSE [{'key': NULL::DOUBLE, 'text': CAST(value AS VARCHAR)},
               {'key': TRY_CAST(regexp_replace(CAST(value AS VARCHAR), '[^0-9.\-]', '', 'g') AS DOUBLE), 'text': NULL},
               {'key': anon._date_part(CAST(value AS VARCHAR), 1) * 10_000
                       + anon._date_part(CAST(value AS VARCHAR), 2) * 100
                       + anon._date_part(CAST(value AS VARCHAR), 3), 'text': NULL},
               {'key': anon._date_part(CAST(value AS VARCHAR), 3) * 10_000
                       + anon._date_part(CAST(value AS VARCHAR), 2) * 100
                       + anon._date_part(CAST(value AS VARCHAR), 1), 'text': NULL},
               {'key': anon._date_part(CAST(value AS VARCHAR), 3) * 10_000
                       + anon._date_part(CAST(value AS VARCHAR), 1) * 100
                       + anon._date_part(CAST(value AS VARCHAR), 2), 'text': NULL},
               {'key': anon._date_part(CAST(value AS VARCHAR), 2) * 10_000
                       + nullif(list_position(['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct',
                                               'nov', 'dec'],
                                              regexp_extract(lower(CAST(value AS VARCHAR)),
                                                  '(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)', 1)), 0) * 100
                       + anon._date_part(CAST(value AS VARCHAR), 1), 'text': NULL}] END;
