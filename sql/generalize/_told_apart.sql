-- anon._told_apart: a value on its way to Python, refused where it would arrive as another one: UHUGEINT becomes a
-- signed type there. (Python refuses what other types hold from 2^53 on.) Types are known when the query is bound, so
-- that nothing of it is left in the query for other types.
CREATE OR REPLACE MACRO anon._told_apart(caller, column_name, value) AS
    CASE WHEN typeof(value) = 'UHUGEINT' AND TRY_CAST(value AS DOUBLE) >= pow(2, 53)
              THEN error(caller || ': column "' || column_name || '" holds whole numbers from 2^53 on, which a double '
                         || 'does not tell apart; divide it, or cast it to DOUBLE, or to VARCHAR where it is a code.')
         WHEN typeof(value) = 'VARIANT'
              THEN error(caller || ': column "' || column_name || '" is of type VARIANT, which cannot be worked on; '
                         || 'cast it to VARCHAR or a number first.')
         ELSE value END;
