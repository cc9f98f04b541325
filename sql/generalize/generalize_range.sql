-- anon.generalize_range: the range that a number falls into, as the text '[20, 30)': from 20, below 30. NULL stays
-- NULL.
--     value   number to generalize; NULL stays NULL [a number]
--     step    width of the ranges, such as 10 or 0.5 [a number above 0]
--     origin  one range begins here [a number]
-- It is computed in doubles, which tell whole numbers apart below 2^53 only: larger numbers are refused.
-- promises: FunctionOfValue(), TrueLabels()
-- test: tests/generalize/generalize_range.test
CREATE OR REPLACE MACRO anon.generalize_range(value, step, origin := 0) AS
    CASE WHEN coalesce(NOT (anon._exact_number(step) > 0 AND isfinite(anon._exact_number(step))), true)
              THEN anon._refused('anon.generalize_range', 'step', 'a number above 0', step)
         WHEN coalesce(NOT isfinite(anon._exact_number(origin)), true)
              THEN anon._refused('anon.generalize_range', 'origin', 'a finite number', origin)
         WHEN value IS NULL THEN NULL
         WHEN coalesce(NOT isfinite(anon._exact_number(value)), true)
              THEN anon._refused_cell('anon.generalize_range', 'value', 'a finite number', value)
         -- A division is off by one at a bound now and then (0.3 / 0.1 is below 3), so that its result is compared with
         -- the bounds that the label shows. A step of 0 was refused, but constants are divided before, and may fail.
         ELSE list_transform(
                  [{'at': anon._exact_number(value), 'step': anon._exact_number(step),
                    'origin': anon._exact_number(origin),
                    'place': floor((anon._exact_number(value) - anon._exact_number(origin))
                                   / nullif(anon._exact_number(step), 0)),
                    'digits': list_max(list_transform(      -- those after the point when written without an exponent
                        [CAST(anon._exact_number(step) AS VARCHAR), CAST(anon._exact_number(origin) AS VARCHAR)],
                        lambda number: greatest(0, length(regexp_extract(number, '\.(\d*[1-9])', 1))
                                                   - coalesce(TRY_CAST(regexp_extract(number, 'e(.*)', 1) AS INTEGER),
                                                              0))::INTEGER))}], lambda known:
                  list_transform(
                      [known.place + CASE WHEN known.at >= anon._range_bound(known.place + 1, known) THEN 1
                                          WHEN known.at < anon._range_bound(known.place, known) THEN -1
                                          ELSE 0 END], lambda place:
                      CASE WHEN greatest(abs(known.at), abs(place)) < 9007199254740992
                                AND (greatest(abs(anon._range_bound(place, known)),
                                              abs(anon._range_bound(place + 1, known))) <= 9007199254740992
                                     OR anon._range_bound(place + 1, known) - anon._range_bound(place, known)
                                        = known.step)
                                THEN format('[{:.{}f}, {:.{}f})', anon._range_bound(place, known), known.digits,
                                            anon._range_bound(place + 1, known), known.digits)
                           ELSE anon._refused_cell('anon.generalize_range', 'value', 'in a range below 2^53, and fewer '
                                                   || 'than 2^53 steps from origin', value)
                           END)[1])[1] END;
COMMENT ON MACRO anon.generalize_range IS
    'The range of a given width that a number falls into, as a half-open interval.';
