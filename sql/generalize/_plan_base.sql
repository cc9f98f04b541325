-- anon._plan_base: the cell with `bucket`, the one at which the search begins: for numbers the last that begins before
-- the value's cell of the grid, for texts the one before the column's first.
CREATE OR REPLACE MACRO anon._plan_base(cell, lookup) AS
    struct_pack(value := cell.value, planned := cell.planned, number := cell.number, "text" := cell.text,
                bucket := CASE WHEN cell.planned.is_number
                                    THEN lookup.grid[cell.planned.grid_first
                                                     + anon._plan_cell(cell.number, cell.planned.origin,
                                                                       cell.planned.scale, cell.planned.cells)]
                               ELSE cell.planned.first - 1 END);
