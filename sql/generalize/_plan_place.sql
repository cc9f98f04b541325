-- anon._plan_place: the place of a column among those of a plan (anon._plan_lookup); NULL: it is not planned. It is
-- asked for anew in each step, since it is one value for all rows of a block only as long as it is in no struct.
CREATE OR REPLACE MACRO anon._plan_place(name, names) AS list_position(names, lower(name));
