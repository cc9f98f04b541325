-- anon._reaches: whether a number or a date is at least another one. Numbers are compared as doubles, and where these
-- are equal (whole numbers from 2^53 on, long decimals) digit by digit. A TIMESTAMP has no place for the earliest
-- dates.
CREATE OR REPLACE MACRO anon._reaches(value, bound) AS
    CASE WHEN typeof(value) = 'DATE' AND typeof(bound) = 'DATE' THEN TRY_CAST(value AS DATE) >= TRY_CAST(bound AS DATE)
         WHEN regexp_matches(typeof(value) || typeof(bound), 'DATE|TIME')
              THEN coalesce(
                       CASE WHEN typeof(value) = 'TIMESTAMP_NS' AND typeof(bound) = 'TIMESTAMP_NS'
                                 THEN TRY_CAST(value AS TIMESTAMP_NS) >= TRY_CAST(bound AS TIMESTAMP_NS)
                            WHEN 'TIMESTAMP WITH TIME ZONE' IN (typeof(value), typeof(bound))
                                 THEN TRY_CAST(value AS TIMESTAMPTZ) >= TRY_CAST(bound AS TIMESTAMPTZ)
                            ELSE TRY_CAST(value AS TIMESTAMP) >= TRY_CAST(bound AS TIMESTAMP) END,
                       TRY_CAST(value AS DATE) >= TRY_CAST(bound AS DATE))
         WHEN regexp_matches(typeof(value) || typeof(bound), 'FLOAT|DOUBLE')
              OR regexp_full_match(typeof(value) || typeof(bound),
                                   '(U?(TINYINT|SMALLINT|INTEGER)|DECIMAL\((\d|1[0-5]),\d+\))+')
              OR anon._exact_number(value) <> anon._exact_number(bound)
              THEN anon._exact_number(value) >= anon._exact_number(bound)
         ELSE coalesce(TRY_CAST(CAST(value AS VARCHAR) AS DECIMAL(38, 10))
                       >= TRY_CAST(CAST(bound AS VARCHAR) AS DECIMAL(38, 10)),
                       TRY_CAST(CAST(value AS VARCHAR) AS HUGEINT) >= TRY_CAST(CAST(bound AS VARCHAR) AS HUGEINT),
                       anon._exact_number(value) = anon._exact_number(bound)) END;
