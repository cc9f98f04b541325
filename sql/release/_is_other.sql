-- anon._is_other: whether a column is none of `cols`.
CREATE OR REPLACE MACRO anon._is_other(column_name, cols) AS NOT anon._is_among(column_name, cols);
