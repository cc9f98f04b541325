-- anon._is_interval: whether a column is asked for as one of intervals: one of `cols`, or where these are NULL any but
-- the number of the box.
CREATE OR REPLACE MACRO anon._is_interval(column_name, cols) AS
    lower(column_name) <> 'box' AND (cols IS NULL OR anon._is_among(column_name, cols));
