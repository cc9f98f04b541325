-- anon._pack_boxes: the boxes of a boxed table (anon._numbered_boxes) as one value that a Python function can take.
-- needs: python
CREATE OR REPLACE MACRO anon._pack_boxes(caller, boxed, cols) AS (
    WITH _duckanon_boxes AS (
        FROM anon._numbered_boxes(caller, boxed, cols)
    )
    SELECT anon._tickets('"_duckanon_boxes"',
                         list_concat(TRY_CAST(cols AS VARCHAR[]), ['_duckanon_box', '_duckanon_size']), NULL, true));
