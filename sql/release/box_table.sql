-- anon.box_table: the boxes of a boxed table (anon.boxes), one row each: number, records, intervals.
--     boxed  name of a table of intervals with a column `box`, as `anon.boxes` returns it [a text]
--     cols   columns of intervals; NULL: all columns, of which those without intervals are returned empty [a list of
--            names, or NULL]
-- A column called `records` is refused, unless `cols` leaves it out.
-- promises: InvariantUnder('storage', 'columns')
-- test: tests/release/box_table.test
CREATE OR REPLACE MACRO anon.box_table(boxed, cols := NULL) AS TABLE
WITH _duckanon_asked AS (
    SELECT box AS _duckanon_box, COLUMNS(coalesce(TRY_CAST(cols AS VARCHAR[]),
                                                  list_filter(*, lambda name: name NOT IN ('box', '_duckanon_none'))))
    FROM anon._boxed('anon.box_table', CASE WHEN cols IS NULL THEN anon._checked('anon.box_table', boxed, ['*'])
                                            ELSE anon._checked('anon.box_table', boxed, cols) END, boxed)
), _duckanon_boxes AS (
    SELECT _duckanon_box, count(*) AS _duckanon_records, any_value(COLUMNS(* EXCLUDE (_duckanon_box)))
    FROM _duckanon_asked GROUP BY _duckanon_box
)
SELECT _duckanon_box AS box, _duckanon_records AS records,
       CASE WHEN starts_with(typeof(COLUMNS(* EXCLUDE (_duckanon_box, _duckanon_records))), 'STRUCT(lo ')
                 THEN COLUMNS(* EXCLUDE (_duckanon_box, _duckanon_records)) END
FROM _duckanon_boxes
WHERE anon._checked_box_names('anon.box_table', boxed, cols, 'records')
ORDER BY box ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.box_table IS
    'The boxes of a boxed table, one row each: number, records, intervals.';
