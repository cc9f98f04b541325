-- anon.top_code: values of `cap` and above as one category, the text '>=90'; those below as text. The result is text,
-- since a number in place of the category would be taken for a value that somebody has. NULL stays NULL.
--     value, cap  numbers, dates or timestamps
-- test: tests/generalize/top_code.test
CREATE OR REPLACE MACRO anon.top_code(value, cap) AS
    CASE WHEN cap IS NULL THEN anon._refused('anon.top_code', 'cap', 'a number or a date', cap)
         WHEN value >= cap THEN '>=' || CAST(cap AS VARCHAR)
         ELSE CAST(value AS VARCHAR) END;
COMMENT ON MACRO anon.top_code IS
    'Values from a cap on as one category such as >=90, the others as text.';
