-- anon._released: one column of what a Python function returned: a struct of lists, of which the one for its type is filled.
CREATE OR REPLACE MACRO anon._released(released, column_name) AS
    released.columns[list_position(released.names, column_name)];
