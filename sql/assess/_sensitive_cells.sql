-- anon._sensitive_cells: how often each sensitive value occurs in each class: the class's columns, the value (NULL is
-- one) and the number of rows. Everything about diversity and closeness is computed from these.
CREATE OR REPLACE MACRO anon._sensitive_cells(caller, tbl, cols, sensitive, nulls) AS TABLE
SELECT COLUMNS(cols), COLUMNS([sensitive]) AS _duckanon_value, count(*) AS _duckanon_size
FROM query_table(
    anon._checked_name(caller, 'sensitive', 'one column', sensitive,
        CASE WHEN anon._is_among(CAST(sensitive AS VARCHAR), cols)
                  THEN error(caller || ': sensitive must not be one of cols; got ' || CAST(sensitive AS VARCHAR) || '.')
             ELSE anon._checked_choice(caller, 'nulls', nulls, ['value', 'drop'],
                                       anon._checked(caller, tbl, cols)) END))
WHERE nulls = 'value' OR COLUMNS(cols) IS NOT NULL
GROUP BY ALL;
