-- anon.generalize_range: the range that a number falls into, as the text '[20, 30)': from 20, below 30. NULL stays
-- NULL.
--     value   number to generalize; NULL stays NULL [a number]
--     step    width of the ranges, such as 10 or 0.5 [a number above 0]
--     origin  one range begins here [a number]
-- It is computed in doubles, which do not distinguish whole numbers beyond 2^53.
-- promises: FunctionOfValue(), TrueLabels()
-- test: tests/generalize/generalize_range.test
CREATE OR REPLACE MACRO anon.generalize_range(value, step, origin := 0) AS
    CASE WHEN coalesce(NOT (TRY_CAST(step AS DOUBLE) > 0 AND isfinite(TRY_CAST(step AS DOUBLE))), true)
              THEN anon._refused('anon.generalize_range', 'step', 'a number above 0', step)
         WHEN coalesce(NOT isfinite(TRY_CAST(origin AS DOUBLE)), true)
              THEN anon._refused('anon.generalize_range', 'origin', 'a finite number', origin)
         WHEN value IS NULL THEN NULL
         WHEN coalesce(NOT isfinite(TRY_CAST(value AS DOUBLE)), true)
              THEN anon._refused_cell('anon.generalize_range', 'value', 'a finite number', value)
         -- A division is off by one at a bound now and then (0.3 / 0.1 is below 3), so that its result is compared with
         -- the bounds that the label shows. A step of 0 was refused, but constants are divided before, and may fail.
         ELSE list_transform(
                  [{'at': TRY_CAST(value AS DOUBLE), 'step': TRY_CAST(step AS DOUBLE),
                    'origin': TRY_CAST(origin AS DOUBLE),
                    'place': floor((TRY_CAST(value AS DOUBLE) - TRY_CAST(origin AS DOUBLE))
                                   / nullif(TRY_CAST(step AS DOUBLE), 0)),
                    'digits': list_max(list_transform(      -- those after the point when written without an exponent
                        [CAST(TRY_CAST(step AS DOUBLE) AS VARCHAR), CAST(TRY_CAST(origin AS DOUBLE) AS VARCHAR)],
                        lambda number: greatest(0, length(regexp_extract(number, '\.(\d*[1-9])', 1))
                                                   - coalesce(TRY_CAST(regexp_extract(number, 'e(.*)', 1) AS INTEGER),
                                                              0))::INTEGER))}], lambda known:
                  list_transform(
                      [known.place + CASE WHEN known.at >= anon._range_bound(known.place + 1, known) THEN 1
                                          WHEN known.at < anon._range_bound(known.place, known) THEN -1
                                          ELSE 0 END], lambda place:
                      format('[{:.{}f}, {:.{}f})', anon._range_bound(place, known), known.digits,
                             anon._range_bound(place + 1, known), known.digits))[1])[1] END;
COMMENT ON MACRO anon.generalize_range IS
    'The range of a given width that a number falls into, as a half-open interval.';
