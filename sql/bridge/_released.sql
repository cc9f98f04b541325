-- anon._released: one column of what a Python function returned: a struct with one list for each kind of type, of which
-- a single one is filled.
CREATE OR REPLACE MACRO anon._released(released, column_name) AS
    released.columns[list_position(released.names, column_name)];
