-- anon._names_identifier: whether a column's name says that it identifies people.
CREATE OR REPLACE MACRO anon._names_identifier(column_name) AS false;
