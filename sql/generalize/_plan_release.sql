-- anon._plan_release: what a cell can be released as: its value, and where its column is planned the label of its
-- bucket, also as a number (anon._plan_lookup).
CREATE OR REPLACE MACRO anon._plan_release(
    cell, is_planned, null_label, rest_label, labels, null_code, rest_code, codes
) AS
    struct_pack(value := cell.value,
                label := CASE WHEN NOT is_planned THEN NULL
                              WHEN cell.value IS NULL THEN null_label
                              WHEN cell.bucket IS NULL THEN rest_label
                              ELSE labels[cell.bucket] END,
                code := CASE WHEN NOT is_planned THEN NULL
                             WHEN cell.value IS NULL THEN null_code
                             WHEN cell.bucket IS NULL THEN rest_code
                             ELSE codes[cell.bucket] END);
