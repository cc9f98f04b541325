-- anon._sensitive_cells: how often each sensitive value occurs in each class: the class's columns, the value (NULL is
-- one) and the number of rows, or with `person` the number of different people who have it there, which is 0 where no
-- row says whose it is. Everything about diversity and closeness is computed from these.
CREATE OR REPLACE MACRO anon._sensitive_cells(caller, tbl, cols, sensitive, nulls, person := NULL) AS TABLE
WITH _duckanon_cell_rows AS (
    SELECT COLUMNS(cols), COLUMNS([sensitive]) AS _duckanon_value, count(*) AS _duckanon_size
    FROM query_table(anon._checked_sensitive(caller, tbl, cols, sensitive, nulls))
    WHERE nulls = 'value' OR COLUMNS(cols) IS NOT NULL
    GROUP BY ALL
), _duckanon_cell_members AS (
    SELECT COLUMNS(cols), COLUMNS([sensitive]) AS _duckanon_value,
           CASE WHEN COLUMNS([person]) IS NOT NULL THEN hash(COLUMNS([person])) END AS _duckanon_person
    FROM query_table(anon._checked_person(caller, person, cols,
             CASE WHEN lower(CAST(person AS VARCHAR)) = lower(CAST(sensitive AS VARCHAR))
                       THEN error(caller || ': person must not be the sensitive column; got '
                                  || CAST(person AS VARCHAR) || '.')
                  ELSE anon._checked_sensitive(caller, tbl, cols, sensitive, nulls) END))
    WHERE nulls = 'value' OR COLUMNS(cols) IS NOT NULL
    GROUP BY ALL
), _duckanon_cell_people AS (
    SELECT COLUMNS(cols), _duckanon_value, count(_duckanon_person) AS _duckanon_size
    FROM _duckanon_cell_members
    GROUP BY ALL
)
FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_cell_rows' ELSE '_duckanon_cell_people' END);
