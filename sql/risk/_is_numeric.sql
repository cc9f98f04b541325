-- anon._is_numeric: true for a column of numbers; refuses any other.
CREATE OR REPLACE MACRO anon._is_numeric(caller, column_name, column_type) AS
    CASE WHEN anon._kind(column_type) = 'numeric' THEN true
         ELSE error(caller || ': cols must name columns of numbers; got ' || column_name || ', which is '
                    || column_type || '.') END;
