-- anon.bottom_code: values of `floor` and below as one category, the text '<=18'; those above as text. The counterpart
-- of anon.top_code. NULL stays NULL.
--     value  value to code; NaN is refused [a number, date or timestamp]
--     floor  largest value of the category [a number, date or timestamp]
-- promises: FunctionOfValue(), TrueLabels()
-- test: tests/generalize/bottom_code.test
CREATE OR REPLACE MACRO anon.bottom_code(value, floor) AS
    anon._end_code('anon.bottom_code', 'floor', value, floor, anon._reaches(floor, value), '<=');
COMMENT ON MACRO anon.bottom_code IS
    'Values up to a floor as one category such as <=18, the others as text.';
