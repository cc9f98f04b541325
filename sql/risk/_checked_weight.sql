-- anon._checked_weight: a row's weight, how many people of the population it stands for; one that is NULL, not finite
-- or not above zero is refused. Rows without weights have none, NULL.
--     weight  name of the column, NULL for none
CREATE OR REPLACE MACRO anon._checked_weight(caller, weight, value) AS
    CASE WHEN weight IS NULL THEN NULL
         WHEN isfinite(TRY_CAST(value AS DOUBLE)) AND TRY_CAST(value AS DOUBLE) > 0 THEN CAST(value AS DOUBLE)
         ELSE error(caller || ': weight must name a column of positive numbers; got one that holds NULL or something '
                    || 'else.') END;
