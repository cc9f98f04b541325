-- anon._diversity: what the sensitive values of each class look like to someone who knows that a person is in it.
--     entropy_l  exp of the entropy of the values' shares
--     counts     how often each value occurs, the most frequent first
CREATE OR REPLACE MACRO anon._diversity(caller, tbl, cols, sensitive, nulls) AS TABLE
SELECT struct_pack(*COLUMNS(cols)) AS class, _duckanon_rows AS class_size, _duckanon_values AS distinct_l,
       greatest(exp(ln(_duckanon_rows) - _duckanon_logs / _duckanon_rows), 1) AS entropy_l,
       list_sort(_duckanon_counts, 'DESC', 'NULLS LAST') AS counts
FROM (SELECT COLUMNS(cols), sum(_duckanon_size)::BIGINT AS _duckanon_rows, count(*) AS _duckanon_values,
             sum(_duckanon_size * ln(_duckanon_size)) AS _duckanon_logs, list(_duckanon_size) AS _duckanon_counts
      FROM anon._sensitive_cells(caller, tbl, cols, sensitive, nulls)
      GROUP BY ALL);
