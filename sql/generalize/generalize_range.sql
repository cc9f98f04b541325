-- anon.generalize_range: the range that a number falls into, as the text '[20, 30)': from 20, below 30. NULL stays
-- NULL.
--     value   number to generalize; NULL stays NULL [a number]
--     step    width of the ranges, such as 10 or 0.5 [a number above 0]
--     origin  one range begins here [a number]
-- It is computed in doubles, which do not distinguish whole numbers beyond 2^53.
-- test: tests/generalize/generalize_range.test
CREATE OR REPLACE MACRO anon.generalize_range(value, step, origin := 0) AS
    CASE WHEN coalesce(NOT (TRY_CAST(step AS DOUBLE) > 0 AND isfinite(TRY_CAST(step AS DOUBLE))), true)
              THEN anon._refused('anon.generalize_range', 'step', 'a number above 0', step)
         WHEN coalesce(NOT isfinite(TRY_CAST(origin AS DOUBLE)), true)
              THEN anon._refused('anon.generalize_range', 'origin', 'a finite number', origin)
         WHEN value IS NULL THEN NULL
         WHEN coalesce(NOT isfinite(TRY_CAST(value AS DOUBLE)), true)
              THEN anon._refused_cell('anon.generalize_range', 'value', 'a finite number', value)
         ELSE anon._range_label(anon._range_place(TRY_CAST(value AS DOUBLE), TRY_CAST(step AS DOUBLE),
                                                  TRY_CAST(origin AS DOUBLE)),
                                TRY_CAST(step AS DOUBLE), TRY_CAST(origin AS DOUBLE)) END;
COMMENT ON MACRO anon.generalize_range IS
    'The range of a given width that a number falls into, as a half-open interval.';
