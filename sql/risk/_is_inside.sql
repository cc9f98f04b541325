-- anon._is_inside: whether a number is as near to its image as the half width says. NULL is so to NULL; the answer is
-- NULL where only one of them is.
--     is_released  whether there is an image
CREATE OR REPLACE MACRO anon._is_inside(number, image, half_width, is_released) AS
    abs(number - image) <= half_width OR (is_released AND number IS NULL AND image IS NULL);
