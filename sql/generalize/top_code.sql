-- anon.top_code: values of `cap` and above as one category, the text '>=90'; those below as text. The result is text,
-- since a number in place of the category would be taken for somebody's value. NULL stays NULL.
--     value  value to code; NaN is refused [a number, date or timestamp]
--     cap    smallest value of the category [a number, date or timestamp]
-- promises: FunctionOfValue(), TrueLabels()
-- test: tests/generalize/top_code.test
CREATE OR REPLACE MACRO anon.top_code(value, cap) AS
    anon._end_code('anon.top_code', 'cap', value, cap, anon._reaches(value, cap), '>=');
COMMENT ON MACRO anon.top_code IS
    'Values from a cap on as one category such as >=90, the others as text.';
