-- anon._plan_key: the cell with `key`, what is looked up in the grid: its number, or the one of its text's hash.
CREATE OR REPLACE MACRO anon._plan_key(cell, is_number, is_hashed) AS
    struct_pack(value := cell.value, number := cell.number, "text" := cell.text,
                key := CASE WHEN is_number THEN cell.number WHEN is_hashed THEN anon._plan_hash(cell.text) END);
