-- anon._middle_number: the midpoint of an interval of numbers.
CREATE OR REPLACE MACRO anon._middle_number(ends) AS
    anon._middle(anon._plan_number(ends.lo), anon._plan_number(ends.hi));
