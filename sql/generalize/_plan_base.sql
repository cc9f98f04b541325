-- anon._plan_base: the cell with `bucket`, the one at which the search begins: the last that begins before the key's
-- cell of the grid, or where texts are searched in their order the one before the column's first.
CREATE OR REPLACE MACRO anon._plan_base(
    cell, crowd, grid, grid_first, origin, ceiling, scale, shift, last_cell, is_text, first
) AS
    struct_pack(value := cell.value, number := cell.number, "text" := cell.text, key := cell.key,
                bucket := CASE WHEN crowd IS NOT NULL
                                    THEN grid[grid_first
                                              + anon._plan_cell(cell.key, origin, ceiling, scale, shift, last_cell)]
                               WHEN is_text THEN first - 1 END);
