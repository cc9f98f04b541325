-- anon._is_own_name: whether a column is called as the steps of these functions are.
CREATE OR REPLACE MACRO anon._is_own_name(column_name) AS starts_with(lower(column_name), '_duckanon_');
