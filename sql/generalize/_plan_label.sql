-- anon._plan_label: what a cell is released as: `v` the value itself where the column is not planned, `l` the label
-- where it is.
CREATE OR REPLACE MACRO anon._plan_label(cell, lookup) AS
    struct_pack(v := CASE WHEN cell.c.is_number IS NULL THEN cell.x END,
                l := CASE WHEN cell.x IS NULL THEN cell.c.null_label
                          WHEN cell.b IS NULL THEN cell.c.rest_label
                          ELSE lookup.labels[cell.b] END);
