-- anon._plan_release: what a cell can be released as: its value, and where its column is planned the label of its
-- bucket, also as a number (anon._plan_lookup).
CREATE OR REPLACE MACRO anon._plan_release(
    cell, is_planned, null_label, rest_label, labels, null_code, rest_code, codes
) AS
    struct_pack(value := cell.value,
                label := anon._plan_label(cell, is_planned, null_label, rest_label, labels),
                code := anon._plan_label(cell, is_planned, null_code, rest_code, codes));
