-- anon._coded_cells: rows of a table as codes, the 64-bit hashes of their values: `originals` and `labels` of the
-- columns `cols` (and `numbers`, the originals of numbers and dates on the number line, and `texts`, the originals as
-- text), `kept`, those of all other columns (and `kept_keys`, by which these are sorted), `somebody`, the person (NULL
-- where that is not known), and `row_hash`, the hash of all of these.
--     tbl   the name of a step: `cols`, columns that are kept, and the person as _duckanon_person
--     plan  the name of a plan's table; NULL: each value is its own label
-- What has no label travels as one column, since each column that is labelled costs time. Which step is read is known
-- when the query is bound.
CREATE OR REPLACE MACRO anon._coded_cells(caller, tbl, cols, plan) AS TABLE
WITH _duckanon_coded AS (
    SELECT struct_pack(*COLUMNS(cols)) AS columns,
           [UNPACK(coalesce(anon._value_code(COLUMNS(lambda name: name <> '_duckanon_person'
                                                                  AND NOT anon._is_among(name, cols))),
                            hash(NULL)))] AS kept,
           [UNPACK(anon._sort_keys(COLUMNS(lambda name: name <> '_duckanon_person'
                                                        AND NOT anon._is_among(name, cols))))] AS kept_keys,
           anon._value_code(_duckanon_person) AS somebody, hash(_duckanon_row) AS row_hash
    FROM query_table(tbl) AS _duckanon_row
), _duckanon_packed AS (
    SELECT unnest(columns),
           struct_pack(kept := kept, kept_keys := kept_keys, somebody := somebody, row_hash := row_hash)
               AS "duckanon others"
    FROM _duckanon_coded
), _duckanon_plan_of_cols AS (                                  -- a plan may be for other columns, too
    FROM query_table(coalesce(plan, tbl)) WHERE anon._is_among(column_name, cols)
), _duckanon_planned AS (
    FROM anon._labelled_cells(caller, '"_duckanon_packed"', '"_duckanon_plan_of_cols"')
), _duckanon_plain AS (
    SELECT struct_pack(value := COLUMNS(*), label := CAST(COLUMNS(*) AS VARCHAR)) FROM _duckanon_packed
)
SELECT [UNPACK(coalesce(anon._value_code(struct_extract(COLUMNS(cols), 'value')), hash(NULL)))] AS originals,
       [UNPACK(anon._plan_number(struct_extract(COLUMNS(cols), 'value')))] AS numbers,
       [UNPACK(CAST(struct_extract(COLUMNS(cols), 'value') AS VARCHAR))] AS texts,
       [UNPACK(coalesce(anon._value_code(struct_extract(COLUMNS(cols), 'label')), hash(NULL)))] AS labels,
       "duckanon others".value.kept AS kept, "duckanon others".value.kept_keys AS kept_keys,
       "duckanon others".value.somebody AS somebody, "duckanon others".value.row_hash AS row_hash
FROM query_table(CASE WHEN plan IS NULL THEN '_duckanon_plain' ELSE '_duckanon_planned' END);
