-- anon._applied: the planned columns of a table as a plan labels them, and the columns to keep.
--     cols  as in anon._coarse_rows
CREATE OR REPLACE MACRO anon._applied(caller, tbl, cols, plan, keep) AS TABLE
SELECT unnest(_duckanon_class), * EXCLUDE (_duckanon_class, _duckanon_person, _duckanon_sensitive)
FROM anon._coarse_rows(caller, anon._checked_keep(caller, 'keep', keep,
                                  anon._checked_names(caller, 'keep', keep,
                                      anon._checked_names(caller, 'cols', cols, tbl))), cols, plan, keep, NULL, NULL)
WHERE anon._unless((SELECT sentence FROM anon._refused_keep(caller, tbl, cols, keep, NULL)));
