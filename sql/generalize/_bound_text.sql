-- anon._bound_text: a number of anon._plan_number as a label writes it: whole ones without a point, times as dates
-- where it is midnight, with their zone, UTC, where the column has zones.
--     column_type  the type of the column
CREATE OR REPLACE MACRO anon._bound_text(number, column_type) AS
    CASE WHEN anon._kind(column_type) = 'date' AND column_type = 'TIMESTAMP WITH TIME ZONE'
              THEN CAST(make_timestamp(CAST(number AS BIGINT)) AS VARCHAR) || '+00'
         WHEN anon._kind(column_type) = 'date'
              THEN regexp_replace(CAST(make_timestamp(CAST(number AS BIGINT)) AS VARCHAR), ' 00:00:00$', '')
         WHEN number = floor(number) AND abs(number) < 1e16 THEN CAST(CAST(number AS BIGINT) AS VARCHAR)
         ELSE CAST(number AS VARCHAR) END;
