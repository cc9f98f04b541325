-- anon.bottom_code: values of `floor` and below as one category, the text '<=18'; those above as text. The counterpart
-- of anon.top_code. NULL stays NULL.
--     value  value to code [a number, date or timestamp]
--     floor  largest value of the category [a number, date or timestamp]
-- promises: FunctionOfValue(), TrueLabels()
-- test: tests/generalize/bottom_code.test
CREATE OR REPLACE MACRO anon.bottom_code(value, floor) AS
    CASE WHEN floor IS NULL THEN anon._refused('anon.bottom_code', 'floor', 'a number or a date', floor)
         WHEN value <= floor THEN '<=' || CAST(floor AS VARCHAR)
         ELSE CAST(value AS VARCHAR) END;
COMMENT ON MACRO anon.bottom_code IS
    'Values up to a floor as one category such as <=18, the others as text.';
