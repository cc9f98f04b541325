-- anon._refused_cell: like anon._refused, for an argument that is a cell of somebody's row: the sentence says its type
-- and keeps the value to itself.
CREATE OR REPLACE MACRO anon._refused_cell(caller, parameter, must_be, got) AS
    anon._refused(caller, parameter, must_be, 'another value of type ' || typeof(got));
