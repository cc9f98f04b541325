-- anon._run_label: the label of a run of values that begins at `start` and ends before `next_start` (NULL: it is the
-- last). The outer runs are open: they publish no extreme value, and new extremes fit in.
CREATE OR REPLACE MACRO anon._run_label(start, next_start, is_first) AS
    CASE WHEN is_first AND next_start IS NULL THEN '*'
         WHEN is_first THEN '<' || next_start
         WHEN next_start IS NULL THEN '>=' || start
         ELSE '[' || start || ', ' || next_start || ')' END;
