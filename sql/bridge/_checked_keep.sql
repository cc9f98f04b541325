-- anon._checked_keep: passes `result` on where a parameter is NULL or a list of names, refuses it otherwise.
CREATE OR REPLACE MACRO anon._checked_keep(caller, parameter, keep, result) AS
    CASE WHEN keep IS NULL OR (ends_with(typeof(keep), ']') AND len(TRY_CAST(keep AS VARCHAR[])) = 0)
              OR (regexp_full_match(typeof(keep), 'VARCHAR\[\d*\]')
                  AND len(list_filter(TRY_CAST(keep AS VARCHAR[]), lambda named: named IS NULL)) = 0) THEN result
         ELSE error(anon._must_be(caller, parameter, 'a list of column names such as [''diagnosis'']', keep)) END;
