-- anon._in_order: the cells of a row, which come in the order of the table's columns, in the order of `cols`.
CREATE OR REPLACE MACRO anon._in_order(row_cells, row_names, cols) AS
    list_transform(cols, lambda named: row_cells[list_position(row_names, lower(named))]);
