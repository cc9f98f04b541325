-- anon._checked_by: passes `result` on where `by` is NULL or a list of columns to group by, refuses it otherwise.
--     cols   the columns that the groups' answers are about
--     added  the columns of the answer, as which no group can be called
CREATE OR REPLACE MACRO anon._checked_by(caller, by, cols, added, result) AS
    CASE WHEN "by" IS NULL THEN result
         WHEN NOT regexp_full_match(typeof("by"), 'VARCHAR\[\d*\]') OR len(TRY_CAST("by" AS VARCHAR[])) = 0
              OR len(list_filter(TRY_CAST("by" AS VARCHAR[]), lambda named: named IS NULL)) > 0
              THEN error(anon._must_be(caller, 'by', 'NULL or a list of column names such as [''sex'', ''region'']',
                                       "by"))
         WHEN len(list_distinct(list_transform(TRY_CAST("by" AS VARCHAR[]), lambda named: lower(named))))
              < len(TRY_CAST("by" AS VARCHAR[]))
              THEN error(caller || ': by must name each column once; got ' || CAST("by" AS VARCHAR) || '.')
         WHEN len(list_filter(TRY_CAST("by" AS VARCHAR[]), lambda named: anon._is_among(named, cols))) > 0
              THEN error(caller || ': by must not name a column that is asked for; got ' || CAST("by" AS VARCHAR)
                         || '.')
         WHEN len(list_filter(TRY_CAST("by" AS VARCHAR[]), lambda named: anon._is_among(named, added))) > 0
              THEN error(caller || ': by must not name a column that the answer has too, which are '
                         || CAST(added AS VARCHAR) || '; got ' || CAST("by" AS VARCHAR) || ': rename it first.')
         ELSE result END;
