-- anon._plan_named_cell: a cell of anon._labelled_cells with its column's name: the hash of its value, and its label.
CREATE OR REPLACE MACRO anon._plan_named_cell(cell, name) AS
    struct_pack(column_name := name, is_planned := cell.code IS NOT NULL, value_hash := hash(cell.value),
                label := cell.label);
