-- anon._is_other: whether a column is none of `cols`.
CREATE OR REPLACE MACRO anon._is_other(name, cols) AS
    NOT list_contains(list_transform(cols, lambda c: lower(c)), lower(name));
