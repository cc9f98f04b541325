-- anon._plan_match: the cell with `bucket` set to NULL where the one that was found does not hold the value. A text is
-- in a bucket only if it is the bucket's own text, or begins with it where the plan goes by prefixes; below a column's
-- first bucket lies another column's last. What cannot be read as a number was looked up nowhere.
CREATE OR REPLACE MACRO anon._plan_match(cell, texts, is_number, is_hashed, is_prefix, is_text, first) AS
    struct_pack(value := cell.value, number := cell.number, bucket :=
        CASE WHEN is_number THEN cell.bucket
             WHEN is_hashed THEN CASE WHEN texts[cell.bucket] = cell.text THEN cell.bucket END
             WHEN is_text
                  THEN CASE WHEN cell.bucket < first THEN NULL
                            WHEN is_prefix
                                 THEN CASE WHEN starts_with(cell.text, texts[cell.bucket]) THEN cell.bucket END
                            WHEN texts[cell.bucket] = cell.text THEN cell.bucket END END);
