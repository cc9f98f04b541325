-- anon._named_number: a value with the name of its column, as the number of anon._plan_number.
CREATE OR REPLACE MACRO anon._named_number(value, name) AS
    struct_pack(name := lower(name), number := anon._plan_number(value));
