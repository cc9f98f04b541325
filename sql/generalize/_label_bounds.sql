-- anon._label_bounds: the values that a label of numbers or dates stands for, as bounds on the number line (NULL: none
-- on that side) and whether they belong to it; NULL where the label is not understood.
--     '*'                            everything
--     '40', '2024-Q1', '1950s'       a number or a unit of the calendar (anon._calendar_cell)
--     '<25', '<=25', '>80', '>=80', '90+', '<=1930s'
--     '[17, 25)', '[17, 25]', '(17, 25]', '[1950-03-01, 1951-01-01)'
--     kind  'numeric' or 'date': 2024 is a number in one, a year in the other
-- The lambdas stand for names: what a macro gets as an argument is written out wherever the macro uses it.
CREATE OR REPLACE MACRO anon._label_bounds(label, kind) AS
    list_transform(
        list_transform(
            [regexp_extract(label, '^\s*(\[|\(|<=|>=|<|>|)\s*([^,]+?)\s*(?:,\s*([^,]+?)\s*)?(\]|\)|\+|)\s*$',
                            ['sign', 'first', 'second', 'finish'])],
            lambda parts: {'sign': parts.sign, 'finish': parts.finish, 'is_pair': parts.second <> '',
                           'cells': list_transform([parts.first, parts.second],
                                                   lambda cell: anon._label_cell(cell, kind))}),
        lambda read: CASE WHEN label = '*' THEN anon._interval(NULL, true, NULL, true)
                          ELSE anon._read_bounds(read.sign, read.finish, read.is_pair,
                                                 read.cells[1], read.cells[2]) END)[1];
