-- anon._open_ends: an interval as anon._ends has it, infinite where an end is missing.
CREATE OR REPLACE MACRO anon._open_ends(ends, name) AS
    struct_pack(name := lower(name), lo := coalesce(anon._plan_number(ends.lo), '-infinity'::DOUBLE),
                hi := coalesce(anon._plan_number(ends.hi), 'infinity'::DOUBLE));
