-- anon._checked_diversity: passes `result` on where what is asked of a sensitive column can be, refuses it otherwise.
CREATE OR REPLACE MACRO anon._checked_diversity(caller, cols, sensitive, l, l_kind, c, t, by, person, result) AS
    anon._checked_whole(caller, 'l', l, 1,
        anon._checked_choice(caller, 'l_kind', l_kind, ['distinct', 'entropy', 'recursive'],
            CASE WHEN sensitive IS NOT NULL AND typeof(sensitive) <> 'VARCHAR'
                      THEN error(anon._must_be(caller, 'sensitive', 'NULL or the name of one column, in quotes',
                                               sensitive))
                 WHEN sensitive IS NULL AND (l > 1 OR t IS NOT NULL)
                      THEN error(caller || ': sensitive must name the column that l and t are about; got NULL.')
                 WHEN sensitive IS NOT NULL
                      AND anon._is_among(CAST(sensitive AS VARCHAR), anon._with_column(
                              list_concat(TRY_CAST(cols AS VARCHAR[]), TRY_CAST("by" AS VARCHAR[])),
                              CAST(person AS VARCHAR)))
                      THEN error(caller || ': sensitive must be none of cols, by and person; got '
                                 || CAST(sensitive AS VARCHAR) || '.')
                 WHEN t IS NOT NULL AND NOT coalesce(TRY_CAST(t AS DOUBLE) BETWEEN 0 AND 1, false)
                      THEN error(anon._must_be(caller, 't', 'NULL or a number from 0 to 1', t))
                 WHEN NOT coalesce(isfinite(TRY_CAST(c AS DOUBLE)) AND TRY_CAST(c AS DOUBLE) > 0, false)
                      THEN error(anon._must_be(caller, 'c', 'a finite number above 0', c))
                 ELSE result END));
