-- anon.flatten_boxes: a boxed table (anon.boxes) for CSV files and tools without structs: each column x of intervals
-- becomes two, x_lo and x_hi, in its place. All other columns stay as they are. anon.unflatten_boxes is the inverse.
--     boxed  name of a table of intervals, such as `anon.boxes` returns [a text]
-- A table that has a column x_lo or x_hi beside the intervals x is refused.
--     _duckanon_ends  for each column a struct of one field x_lo, and one of x_hi
-- promises: RowPer('row'), InvariantUnder('order', 'storage', 'columns')
-- test: tests/release/flatten_boxes.test
CREATE OR REPLACE MACRO anon.flatten_boxes(boxed) AS TABLE
WITH _duckanon_named AS (
    SELECT list(lower(column_name)) AS names FROM anon._columns(boxed)
), _duckanon_renamed AS (
    SELECT struct_pack(*COLUMNS(_duckanon_source.*)) AS _duckanon_row,
           struct_extract(struct_extract({'interval': COLUMNS('(?s)^(.*)$'), 'exact': {'lo': NULL, 'hi': NULL}},
                                         anon._interval_or_exact(COLUMNS('(?s)^(.*)$'))), 'lo') AS '\1_lo',
           struct_extract(struct_extract({'interval': COLUMNS('(?s)^(.*)$'), 'exact': {'lo': NULL, 'hi': NULL}},
                                         anon._interval_or_exact(COLUMNS('(?s)^(.*)$'))), 'hi') AS '\1_hi'
    FROM (SELECT COLUMNS(anon._user_columns(*, 'anon.flatten_boxes', boxed))
          FROM query_table(anon._checked('anon.flatten_boxes', boxed, ['*']))) AS _duckanon_source
    WHERE anon._unless((SELECT 'anon.flatten_boxes: the table must not have a column called as one of the ends of "'
                               || any_value(column_name) || '", _lo and _hi; rename it first.'
                        FROM anon._columns(boxed), _duckanon_named
                        WHERE anon._is_interval_type(column_type)
                          AND list_has_any(names, [lower(column_name) || '_lo', lower(column_name) || '_hi'])
                        HAVING count(*) > 0))
), _duckanon_gathered AS (
    SELECT _duckanon_row, struct_pack(*COLUMNS(* EXCLUDE (_duckanon_row))) AS _duckanon_ends
    FROM (SELECT _duckanon_row, struct_pack(COLUMNS(* EXCLUDE (_duckanon_row))) FROM _duckanon_renamed)
), _duckanon_spread AS (
    SELECT unnest(_duckanon_row), _duckanon_ends FROM _duckanon_gathered
), _duckanon_placed AS (
    SELECT struct_extract(
               {'interval': struct_concat(
                    struct_extract(_duckanon_ends,
                                   anon._only_name(typeof(struct_pack(COLUMNS(* EXCLUDE (_duckanon_ends))))) || '_lo'),
                    struct_extract(_duckanon_ends,
                                   anon._only_name(typeof(struct_pack(COLUMNS(* EXCLUDE (_duckanon_ends))))) || '_hi')),
                'exact': struct_pack(COLUMNS(* EXCLUDE (_duckanon_ends)))},
               anon._interval_or_exact(COLUMNS(* EXCLUDE (_duckanon_ends))))
    FROM _duckanon_spread
)
SELECT unnest(COLUMNS(*)) FROM _duckanon_placed;
COMMENT ON MACRO TABLE anon.flatten_boxes IS
    'A boxed table with two columns for each interval, x_lo and x_hi, for CSV files and other tools.';
