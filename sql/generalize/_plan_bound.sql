-- anon._plan_bound: where a bucket of a plan begins or ends, as the number of anon._plan_number.
CREATE OR REPLACE MACRO anon._plan_bound(covers, bound) AS
    CASE covers WHEN 'number' THEN CAST(bound AS DOUBLE)
                WHEN 'time' THEN CAST(epoch_us(CAST(bound AS TIMESTAMP)) AS DOUBLE) END;
