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
                           'cells': list_transform([parts.first, parts.second], lambda cell:
                                        CASE WHEN kind = 'date' THEN anon._calendar_cell(cell)
                                             WHEN isfinite(TRY_CAST(cell AS DOUBLE))
                                             THEN {'lower': TRY_CAST(cell AS DOUBLE), 'upper': TRY_CAST(cell AS DOUBLE),
                                                   'closed': true} END)}),
        lambda read:
            CASE WHEN label = '*' THEN anon._interval(NULL, true, NULL, true)
                 WHEN read.cells[1] IS NULL OR read.is_pair <> (read.sign IN ('[', '('))      -- they do not go together
                      OR read.is_pair <> (read.finish IN (']', ')')) THEN NULL
                 WHEN read.is_pair AND read.cells[2] IS NULL OR read.sign <> '' AND read.finish = '+' THEN NULL
                 ELSE anon._interval(
                     CASE WHEN read.sign IN ('(', '>') THEN read.cells[1].upper
                          WHEN read.sign IN ('[', '>=', '') THEN read.cells[1].lower END,
                     read.sign NOT IN ('(', '>') OR NOT read.cells[1].closed,
                     CASE WHEN read.finish = ')' THEN read.cells[2].lower
                          WHEN read.finish = ']' THEN read.cells[2].upper
                          WHEN read.sign = '<' THEN read.cells[1].lower
                          WHEN read.sign = '<=' OR (read.sign = '' AND read.finish = '') THEN read.cells[1].upper END,
                     CASE WHEN read.finish = ')' OR read.sign = '<' THEN false
                          WHEN read.finish = ']' THEN read.cells[2].closed
                          WHEN read.sign = '<=' OR (read.sign = '' AND read.finish = '') THEN read.cells[1].closed
                          ELSE true END) END)[1];
