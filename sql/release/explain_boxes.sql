-- anon.explain_boxes: the widths of the intervals of a boxed table (anon.boxes), of either shape, one row per column.
--     parts              different places at which intervals begin; for a column of labels, different labels
--     mean_width         over the records whose interval has both ends; dates and timestamps in days
--     share_of_range     the same divided by the distance from the lowest to the highest end
--     narrowest, widest  widths of intervals, over the same records
--     open_ends          records whose interval has no lower or no upper end (top_code)
--     nulls              records without a label: it was NULL, or their group was too small for it (by)
--     is_one_for_all     whether everybody has the same interval: no statistic uses the column (`statistics`), all its
--                        values are equal, or k is too large for two parts
--     boxed              name of a table of intervals, such as `anon.boxes` returns [a text]
-- promises: Between(0, 1, 'share_of_range'), InvariantUnder('order', 'storage', 'columns')
-- test: tests/release/explain_boxes.test
CREATE OR REPLACE MACRO anon.explain_boxes(boxed) AS TABLE
WITH _duckanon_asked AS (
    SELECT COLUMNS(lambda column_name: lower(column_name) <> 'box')
    FROM anon._intervals('anon.explain_boxes', anon._checked('anon.explain_boxes', boxed, ['*']), boxed)
), _duckanon_intervals AS (       -- a label becomes an interval from its hash to its hash
    SELECT struct_extract({'interval': COLUMNS(*),
                           'label': struct_pack(lo := anon._value_code(COLUMNS(*)),
                                                hi := anon._value_code(COLUMNS(*)))},
                          CASE WHEN starts_with(anon._type_of(COLUMNS(*)), 'STRUCT(lo ') THEN 'interval'
                               ELSE 'label' END)
    FROM _duckanon_asked
), _duckanon_cells AS (
    SELECT unnest(range(1, 1 + len(cells))) AS place, unnest(cells, max_depth := 2)
    FROM (SELECT [UNPACK(anon._ends(COLUMNS(*), ''))] AS cells FROM _duckanon_intervals)
), _duckanon_widths AS (
    SELECT place, lo, hi, count(*) AS records, hi - lo AS width
    FROM (SELECT place, nullif(lo, '-infinity'::DOUBLE) AS lo, nullif(hi, 'infinity'::DOUBLE) AS hi
          FROM _duckanon_cells)
    GROUP BY place, lo, hi
), _duckanon_summary AS (
    SELECT place, count(DISTINCT lo) AS labels, count(DISTINCT coalesce(lo, '-infinity'::DOUBLE)) AS places,
           count(*) AS intervals, sum(width * records) / sum(records) FILTER (width IS NOT NULL) AS mean_width,
           max(hi) - min(lo) AS reach, min(width) AS narrowest, max(width) AS widest,
           sum(records) FILTER (width IS NULL) AS without_width
    FROM _duckanon_widths GROUP BY place
), _duckanon_columns AS (
    SELECT row_number() OVER (ORDER BY place ASC NULLS LAST) AS place, column_name,
           starts_with(column_type, 'STRUCT(lo ') AS is_interval,
           CASE WHEN regexp_matches(column_type, '^STRUCT\(lo (DATE|TIMESTAMP)') THEN 86_400_000_000 ELSE 1 END AS unit
    FROM anon._columns('_duckanon_asked')
)
SELECT column_name, coalesce(CASE WHEN is_interval THEN places ELSE labels END, 0) AS parts,
       CASE WHEN is_interval THEN mean_width / unit END AS mean_width,
       CASE WHEN is_interval THEN mean_width / nullif(reach, 0) END AS share_of_range,
       CASE WHEN is_interval THEN narrowest / unit END AS narrowest,
       CASE WHEN is_interval THEN widest / unit END AS widest,
       CASE WHEN is_interval THEN coalesce(without_width, 0)::BIGINT END AS open_ends,
       CASE WHEN NOT is_interval THEN coalesce(without_width, 0)::BIGINT END AS nulls,
       CASE WHEN is_interval THEN intervals = 1 END AS is_one_for_all
FROM _duckanon_columns LEFT JOIN _duckanon_summary USING (place)
WHERE anon._unless((SELECT 'anon.explain_boxes: boxed must have columns of intervals, as anon.boxes makes them; '
                           || 'it has none.'
                    FROM _duckanon_columns HAVING count(*) FILTER (is_interval) = 0))
ORDER BY place ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.explain_boxes IS
    'One row per column of a boxed table: parts, mean width, share of the range, narrowest and widest interval.';
