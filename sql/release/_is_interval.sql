-- anon._is_interval: whether a column is asked for as one of intervals: `cols`, or all but the number of the box.
CREATE OR REPLACE MACRO anon._is_interval(name, cols) AS
    lower(name) <> 'box' AND (cols IS NULL OR list_contains(list_transform(cols, lambda c: lower(c)), lower(name)));
