-- anon._is_inside: whether a number is as near to the one at a place of a list as a second list says. NULL is so to
-- NULL.
CREATE OR REPLACE MACRO anon._is_inside(number, images, place, half_widths) AS
    coalesce(abs(number - images[place]) <= half_widths[place],
             number IS NULL AND images IS NOT NULL AND images[place] IS NULL);
