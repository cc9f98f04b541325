-- anon._checked_spread: passes `result` on where what is asked of the sensitive values of a class makes sense, refuses
-- it otherwise.
CREATE OR REPLACE MACRO anon._checked_spread(caller, cols, sensitive, l, l_kind, c, t, person, result) AS
    CASE WHEN sensitive IS NULL AND (t IS NOT NULL OR coalesce(TRY_CAST(l AS DOUBLE) <> 1, true))
              THEN error(caller || ': sensitive must be given where l or t is; got NULL.')
         WHEN sensitive IS NULL THEN result
         WHEN typeof(sensitive) <> 'VARCHAR'
              THEN error(anon._must_be(caller, 'sensitive', 'the name of one column, in quotes', sensitive))
         WHEN anon._is_among(CAST(sensitive AS VARCHAR), cols)
              THEN error(caller || ': sensitive must not be one of cols; got ' || CAST(sensitive AS VARCHAR) || '.')
         WHEN anon._is_among(CAST(sensitive AS VARCHAR), [person])
              THEN error(caller || ': sensitive must not be the person; got ' || CAST(sensitive AS VARCHAR) || '.')
         WHEN t IS NOT NULL AND NOT coalesce(TRY_CAST(t AS DOUBLE) BETWEEN 0 AND 1, false)
              THEN error(anon._must_be(caller, 't', 'NULL or a number from 0 to 1', t))
         WHEN NOT coalesce(TRY_CAST(l AS DOUBLE) >= 1 AND isfinite(TRY_CAST(l AS DOUBLE)), false)
              OR (l_kind <> 'entropy' AND TRY_CAST(l AS DOUBLE) <> round(TRY_CAST(l AS DOUBLE)))
              THEN error(anon._must_be(caller, 'l', 'a number of at least 1, whole unless l_kind is entropy', l))
         WHEN NOT coalesce(TRY_CAST(c AS DOUBLE) > 0 AND isfinite(TRY_CAST(c AS DOUBLE)), false)
              THEN error(anon._must_be(caller, 'c', 'a number above 0', c))
         ELSE anon._checked_choice(caller, 'l_kind', l_kind, ['distinct', 'entropy', 'recursive'], result) END;
