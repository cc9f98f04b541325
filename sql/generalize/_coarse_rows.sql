-- anon._coarse_rows: the rows of a table as a plan releases them: `_duckanon_class`, the labels of the planned columns
-- as a struct, `_duckanon_person`, who it is, `_duckanon_sensitive`, and the columns to keep (anon._kept_cells).
--     cols  the planned columns, where they are known before the plan is read: ['*'] in `keep` does not mean them
-- The names of the planned columns are those of the struct in the plan's column `released`, since a query's columns
-- must be known before any row is read: a cast between structs takes the fields that both have.
CREATE OR REPLACE MACRO anon._coarse_rows(caller, tbl, cols, plan, keep, person, sensitive) AS TABLE
SELECT struct_extract(
           {'planned': cast_to_type(_duckanon_labels, _duckanon_plan._duckanon_released),
            'lost': {'plan': CASE WHEN NOT starts_with(typeof(_duckanon_plan._duckanon_released), 'STRUCT(')
                                  THEN error(caller || ': plan must have a column released, a STRUCT of its columns; '
                                             || 'got one without, as plans come back from CSV: store it as a table or '
                                             || 'as Parquet.') END}},
           CASE WHEN starts_with(typeof(_duckanon_plan._duckanon_released), 'STRUCT(') THEN 'planned' ELSE 'lost' END)
           AS _duckanon_class,
       * EXCLUDE (_duckanon_labels, _duckanon_none, _duckanon_released)
FROM anon._kept_cells(caller, tbl, cols, plan, keep, person, sensitive)
     LEFT JOIN (SELECT released AS _duckanon_released FROM query_table(plan) LIMIT 0) AS _duckanon_plan ON true;
