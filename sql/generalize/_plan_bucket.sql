-- anon._plan_bucket: the cell with `bucket`, the last one that begins at or before the key. Where no cell of the grid
-- holds more than two beginnings that takes one comparison or two, else a binary search.
CREATE OR REPLACE MACRO anon._plan_bucket(cell, crowd, numbers, texts, steps, last, is_text) AS
    struct_pack(value := cell.value, number := cell.number, "text" := cell.text, bucket :=
        CASE WHEN crowd <= 1 THEN CASE WHEN numbers[cell.bucket + 1] <= cell.key THEN cell.bucket + 1
                                       ELSE cell.bucket END
             WHEN crowd = 2 THEN CASE WHEN NOT coalesce(numbers[cell.bucket + 1] <= cell.key, false) THEN cell.bucket
                                      WHEN numbers[cell.bucket + 2] <= cell.key THEN cell.bucket + 2
                                      ELSE cell.bucket + 1 END
             WHEN crowd > 2
                  THEN list_reduce(steps, lambda reached, step:
                           reached + CASE WHEN reached + step <= last AND numbers[reached + step] <= cell.key
                                          THEN step ELSE 0 END, cell.bucket)
             WHEN is_text
                  THEN list_reduce(steps, lambda reached, step:
                           reached + CASE WHEN reached + step <= last AND texts[reached + step] <= cell.text
                                          THEN step ELSE 0 END, cell.bucket) END);
