-- anon._like: a result as the type of a value. An untyped NULL is no type to cast to: beside a text it is one.
CREATE OR REPLACE MACRO anon._like(result, value) AS cast_to_type(result, coalesce(value, ''));
