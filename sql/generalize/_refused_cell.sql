-- anon._refused_cell: like anon._refused, for an argument that is a cell of somebody's row: the sentence says its type
-- and keeps the value to itself. The type of an ENUM would be all its labels.
CREATE OR REPLACE MACRO anon._refused_cell(caller, parameter, must_be, got) AS
    CAST(anon._refuse(anon._must_be(caller, parameter, must_be,
                                    'another value of type ' || regexp_replace(typeof(got), 'ENUM\(.*\)', 'ENUM')))
         AS VARCHAR);
