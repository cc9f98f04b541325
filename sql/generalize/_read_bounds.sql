-- anon._read_bounds: the interval that the parts of a label describe: a sign, one or two cells, a closing sign. NULL
-- where they do not go together.
CREATE OR REPLACE MACRO anon._read_bounds(sign, finish, is_pair, first_cell, second_cell) AS
    CASE WHEN first_cell IS NULL OR is_pair <> (sign IN ('[', '(')) OR is_pair <> (finish IN (']', ')')) THEN NULL
         WHEN is_pair AND second_cell IS NULL OR sign <> '' AND finish = '+' THEN NULL
         ELSE anon._interval(
             CASE WHEN sign IN ('(', '>') THEN first_cell.upper WHEN sign IN ('[', '>=', '') THEN first_cell.lower END,
             sign NOT IN ('(', '>') OR NOT first_cell.closed,
             CASE WHEN finish = ')' THEN second_cell.lower WHEN finish = ']' THEN second_cell.upper
                  WHEN sign = '<' THEN first_cell.lower
                  WHEN sign = '<=' OR (sign = '' AND finish = '') THEN first_cell.upper END,
             CASE WHEN finish = ')' OR sign = '<' THEN false WHEN finish = ']' THEN second_cell.closed
                  WHEN sign = '<=' OR (sign = '' AND finish = '') THEN first_cell.closed ELSE true END) END;
