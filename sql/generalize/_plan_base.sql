-- anon._plan_base: the cell with `b`, the bucket at which the search begins. For numbers the last that begins before
-- the value's cell of the grid; for texts the place before the first.
CREATE OR REPLACE MACRO anon._plan_base(cell, lookup) AS
    struct_pack(x := cell.x, c := cell.c, n := cell.n, t := cell.t,
                b := CASE WHEN cell.c.is_number
                               THEN lookup.grid[cell.c.grid_first
                                                + anon._plan_cell(cell.n, cell.c.origin, cell.c.scale, cell.c.cells)]
                          ELSE cell.c.first - 1 END);
