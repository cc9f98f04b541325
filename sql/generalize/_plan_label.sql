-- anon._plan_label: what a cell is released as: `value` where its column is not planned, `label` where it is.
CREATE OR REPLACE MACRO anon._plan_label(cell, lookup) AS
    struct_pack(value := CASE WHEN cell.planned.is_number IS NULL THEN cell.value END,
                label := CASE WHEN cell.value IS NULL THEN cell.planned.null_label
                              WHEN cell.bucket IS NULL THEN cell.planned.rest_label
                              ELSE lookup.labels[cell.bucket] END);
