-- anon.boxes: a table whose columns `cols`, numbers and dates, become intervals, a STRUCT(lo, hi) under the column's
-- own name, such that at least `k` records share each box of intervals; its number is in `box`. Of all other columns
-- those in `keep` are released as they are, but for ENUMs, which become VARCHAR: their type lists values that no row
-- has.
--     statistics  what the boxes should serve, a list of {'statistic': ..., 'columns': [...]}, with 'probability' (how
--                 often it is asked for) and 'accuracy' (which share of its value matters): mean, variance,
--                 standard_deviation, covariance, correlation, regression (the target first); NULL: the means of all
--                 columns. Columns that no statistic uses do not shape the boxes: there each box covers all values
--     l, epsilon  at least l values in each column of a box that are at least epsilon apart: MAP {'age': 2} (dates: in
--                 days)
--     box         'parts': boxes are made of parts of columns that at least k records share, cut at round numbers;
--                 'cell': boxes tile the space, cut midway between two records, the outermost end at round numbers;
--                 'rounded': the smallest and largest value of the records, grown outward to round numbers, for dates
--                 to whole months; 'bounds': these values themselves, which are real people's
--     bounds_are_public   true allows 'bounds'
--     top_code    true: outermost ends far beyond the rest of a column (3 interquartile ranges beyond the quartiles)
--                 are open; they are NULL
--     effort      'thorough' searches further and never returns worse boxes, for `seconds` if they are given
--     person      a column that tells whose each row is, none of `cols`: each box then holds at least k different
--                 people; a row without one counts as nobody's, and the column is released only if it is kept. NULL:
--                 each row is another person
--     by          columns of labels that are released as they are, the most important first: each box has records of
--                 one group only. A group of fewer than k loses its last label, which becomes NULL, and joins the
--                 others that do; larger groups lend as many people as these lack; and so on, until all groups hold k
--     keep, narrowing  other columns to release as they are, as in anon.generalize; NULL: none
-- Parts of whole numbers, days and decimals end one unit before the next begins, the largest that the values of all but
-- at most k - 1 people are multiples of. The outermost ends are values that k people share, or round numbers that k
-- people decide: what fewer than k people have beyond, or beside the unit, is coded to them. Moments are cut at whole
-- days, hours, minutes (of UTC, where they have a time zone). The promise is counted before the rows are returned, in
-- random order.
--     (Accurate Boxes; Fuzzy Boxes, Section IV)
-- test: tests/release/boxes.test
-- needs: python
CREATE OR REPLACE MACRO anon.boxes(
    tbl, cols, k, statistics := NULL, l := 1, epsilon := NULL, box := 'parts', effort := 'default', seconds := NULL,
    person := NULL, keep := NULL, narrowing := NULL, by := NULL, top_code := false,
    bounds_are_public := false
) AS TABLE
WITH _duckanon_chosen AS (
    SELECT COLUMNS(lambda name: anon._is_among(name, cols) OR anon._is_kept(name, cols, keep, person)
                                OR anon._is_among(name, [person]) OR anon._is_among(name, coalesce("by", [])))
    FROM query_table(anon._checked_boxes('anon.boxes', k, l, epsilon, box, bounds_are_public, top_code, effort, seconds,
                         anon._checked_person('anon.boxes', person, cols,
                             anon._checked_keep('anon.boxes', 'keep', keep,
                                 anon._checked_keep('anon.boxes', 'by', "by",
                                     anon._checked('anon.boxes', tbl, cols))))))
)
FROM anon._unpack_boxes(anon._run_boxes(anon._pack_all('anon.boxes', '"_duckanon_chosen"', cols),
                                        {'cols': cols, 'k': k, 'statistics': statistics, 'l': l, 'epsilon': epsilon,
                                         'box': box, 'effort': effort, 'seconds': seconds, 'person': person,
                                         'keeps_person': anon._is_among(CAST(person AS VARCHAR), coalesce(keep, [])),
                                         'narrowing': TRY_CAST(narrowing AS VARCHAR[]), 'top_code': top_code,
                                         'by': TRY_CAST("by" AS VARCHAR[]),
                                         'refused': (SELECT sentence
                                                     FROM anon._refused_keep(NULL, tbl, cols, keep, person))}),
                        '"_duckanon_chosen"', cols,
                        list_concat(TRY_CAST(keep AS VARCHAR[]), TRY_CAST("by" AS VARCHAR[])), person);
COMMENT ON MACRO TABLE anon.boxes IS
    'A table whose numbers and dates become intervals that at least k records share, '
    'shaped for the statistics that matter.';
