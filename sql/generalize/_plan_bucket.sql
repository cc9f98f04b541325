-- anon._plan_bucket: the cell with `bucket`, the last one that begins at or before the value. Where no cell of the grid
-- holds more than one beginning that takes one comparison, else a binary search.
CREATE OR REPLACE MACRO anon._plan_bucket(cell, lookup) AS
    struct_pack(value := cell.value, planned := cell.planned, number := cell.number, "text" := cell.text, bucket :=
        CASE WHEN cell.planned.crowd <= 1
                  THEN cell.bucket + CAST(coalesce(lookup.numbers[cell.bucket + 1] <= cell.number
                                                   AND cell.bucket < cell.planned.last, false) AS INTEGER)
             WHEN cell.planned.is_number
                  THEN list_reduce(cell.planned.steps, lambda reached, step:
                           reached + CASE WHEN reached + step <= cell.planned.last
                                               AND lookup.numbers[reached + step] <= cell.number
                                          THEN step ELSE 0 END, cell.bucket)
             WHEN cell.planned.is_text
                  THEN list_reduce(cell.planned.steps, lambda reached, step:
                           reached + CASE WHEN reached + step <= cell.planned.last
                                               AND lookup.texts[reached + step] <= cell.text
                                          THEN step ELSE 0 END, cell.bucket) END);
