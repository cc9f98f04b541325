-- anon._ends: an interval with the name of its column, its ends as the numbers of anon._plan_number.
CREATE OR REPLACE MACRO anon._ends(ends, name) AS
    struct_pack(name := lower(name), lo := anon._plan_number(ends.lo), hi := anon._plan_number(ends.hi));
