-- anon._with_column: the columns and one more, which may be NULL for none.
CREATE OR REPLACE MACRO anon._with_column(cols, col) AS
    list_concat(cols, list_filter([col], lambda named: named IS NOT NULL));
