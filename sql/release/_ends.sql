-- anon._ends: an interval with the name of its column, its ends as the numbers of anon._plan_number; an open
-- one is infinite.
CREATE OR REPLACE MACRO anon._ends(ends, name) AS
    struct_pack(name := lower(name), lo := coalesce(anon._plan_number(ends.lo), CAST('-inf' AS DOUBLE)),
                hi := coalesce(anon._plan_number(ends.hi), CAST('inf' AS DOUBLE)));
