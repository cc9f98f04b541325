-- anon._plan_bucket: the cell with `b`, the last bucket that begins at or before the value. Where no cell of the grid
-- holds more than one beginning that is one comparison, else a binary search.
CREATE OR REPLACE MACRO anon._plan_bucket(cell, lookup) AS
    struct_pack(x := cell.x, c := cell.c, n := cell.n, t := cell.t, b :=
        CASE WHEN cell.c.crowd <= 1
                  THEN cell.b + CAST(coalesce(lookup.numbers[cell.b + 1] <= cell.n AND cell.b < cell.c.last, false) AS INTEGER)
             WHEN cell.c.is_number
                  THEN list_reduce(cell.c.steps, lambda place, step:
                                   place + CASE WHEN place + step <= cell.c.last AND lookup.numbers[place + step] <= cell.n
                                                     THEN step ELSE 0 END, cell.b)
             WHEN cell.c.is_text
                  THEN list_reduce(cell.c.steps, lambda place, step:
                                   place + CASE WHEN place + step <= cell.c.last AND lookup.texts[place + step] <= cell.t
                                                     THEN step ELSE 0 END, cell.b) END);
