-- anon._are_numbers: true for a column of numbers, an error for any other: a type is known before a row is read.
CREATE OR REPLACE MACRO anon._are_numbers(caller, value) AS
    CASE WHEN anon._kind(typeof(value)) = 'numeric' THEN true
         ELSE error(concat(caller, ': cols must name columns of numbers; got ', alias(value), ', which is ',
                           typeof(value), '.')) END;
