-- anon._checked_weights: passes `result` on where `weights` is NULL or the name of a column that is not asked for,
-- refuses it otherwise.
--     cols  the columns that are asked for
CREATE OR REPLACE MACRO anon._checked_weights(caller, weights, cols, result) AS
    CASE WHEN typeof(weights) NOT IN ('VARCHAR', '"NULL"')
              THEN error(anon._must_be(caller, 'weights', 'the name of a column', weights))
         WHEN list_contains(list_transform(TRY_CAST(cols AS VARCHAR[]), lambda named: lower(named)),
                            lower(CAST(weights AS VARCHAR)))
              THEN error(anon._must_be(caller, 'weights', 'a column of its own', weights))
         ELSE result END;
