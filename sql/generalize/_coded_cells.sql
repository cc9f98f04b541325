-- anon._coded_cells: rows of a table as codes, the 64-bit hashes of their values: `originals` and `labels` of the
-- columns `cols` (and `numbers`, the originals of numbers and dates on the number line, and `texts`, the originals as
-- text), `kept`, those of the columns to keep (and `kept_keys`, by which these are sorted), `somebody`, who it is (NULL
-- where that is not known), and `number`, the row's.
--     tbl   the name of a step
--     plan  the name of a plan's table; NULL: each value is its own label
-- Which of the first two steps is read is known when the query is bound.
CREATE OR REPLACE MACRO anon._coded_cells(caller, tbl, cols, plan, keep, person) AS TABLE
WITH _duckanon_planned AS (
    FROM anon._labelled_cells(caller, tbl, coalesce(plan, tbl))
), _duckanon_plain AS (
    SELECT struct_pack(value := COLUMNS(*), label := CAST(COLUMNS(*) AS VARCHAR)),
           struct_pack(value := NULL::VARCHAR, label := NULL::VARCHAR) AS _duckanon_none
    FROM query_table(tbl)
)
SELECT [UNPACK(hash(struct_extract(COLUMNS(cols), 'value')))] AS originals,
       [UNPACK(anon._plan_number(struct_extract(COLUMNS(cols), 'value')))] AS numbers,
       [UNPACK(CAST(struct_extract(COLUMNS(cols), 'value') AS VARCHAR))] AS texts,
       [UNPACK(hash(struct_extract(COLUMNS(cols), 'label')))] AS labels,
       [UNPACK(hash(struct_extract(COLUMNS(lambda name: anon._is_kept(name, cols, keep, person)), 'value')))] AS kept,
       [UNPACK(anon._sort_keys(struct_extract(COLUMNS(lambda name: anon._is_kept(name, cols, keep, person)), 'value')))]
           AS kept_keys,
       CASE WHEN struct_extract(COLUMNS([coalesce(person, '_duckanon_none')]), 'value') IS NOT NULL
            THEN hash(struct_extract(COLUMNS([coalesce(person, '_duckanon_none')]), 'value')) END AS somebody,
       row_number() OVER () AS number
FROM query_table(CASE WHEN plan IS NULL THEN '_duckanon_plain' ELSE '_duckanon_planned' END);
