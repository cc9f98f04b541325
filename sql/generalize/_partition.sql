-- anon._partition: the buckets of one column that a Python function reported, as a table: bounds in the column's own
-- type, and a label of each.
--     label  'interval': [a, b), open at both ends of the column; 'median', 'mean': of the bucket's rows
-- needs: python
CREATE OR REPLACE MACRO anon._partition(caller, report, tbl, col, label) AS TABLE
SELECT bucket, _duckanon_lower AS lower, _duckanon_upper AS upper, "rows",
       CASE anon._checked_choice(caller, 'label', label, ['interval', 'median', 'mean'], label)
            WHEN 'median' THEN median
            WHEN 'mean' THEN mean
            ELSE anon._run_label(_duckanon_low, lead(_duckanon_low) OVER (ORDER BY bucket ASC NULLS LAST),
                                 bucket = 1) END AS label,
       cost
FROM (SELECT bucket, "rows", cost, median, mean, _duckanon_low,
             cast_to_type(_duckanon_low, _duckanon_value) AS _duckanon_lower,
             cast_to_type(_duckanon_high, _duckanon_value) AS _duckanon_upper
      FROM (SELECT bucket, lower AS _duckanon_low, upper AS _duckanon_high, "rows", median, mean, cost
            FROM (SELECT unnest(report, max_depth := 2)))
           LEFT JOIN (SELECT COLUMNS([col]) AS _duckanon_value FROM query_table(tbl) LIMIT 0) ON true)
ORDER BY bucket ASC NULLS LAST;
