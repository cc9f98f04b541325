-- anon._plan_label: what a cell can be released as: its value, and the label of its bucket where its column is planned.
CREATE OR REPLACE MACRO anon._plan_label(cell, lookup) AS
    struct_pack(value := cell.value,
                label := CASE WHEN cell.value IS NULL THEN cell.planned.null_label
                              WHEN cell.bucket IS NULL THEN cell.planned.rest_label
                              ELSE lookup.labels[cell.bucket] END);
