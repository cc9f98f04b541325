-- anon._unlike_table: the sentence that says why a plan cannot be applied to a table; NULL where it can.
--     columns  how many columns the plan is for
--     missing  one that the table does not have
--     unlike   what is wrong with one that it has (anon._unlike_plan)
CREATE OR REPLACE MACRO anon._unlike_table(caller, columns, missing, unlike) AS
    CASE WHEN columns = 0 THEN caller || ': the plan has no rows; make one with anon.plan.'
         WHEN missing IS NOT NULL
              THEN caller || ': the table has no column "' || missing
                   || '", which the plan is for; apply the plan to a table that has it.'
         ELSE caller || ': ' || unlike END;
