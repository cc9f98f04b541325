-- anon._end_code: the body of anon.top_code and anon.bottom_code: the category where `is_beyond` holds, else the text
-- of the value; refuses what cannot be compared.
--     parameter, bound  the name and the value of the parameter that ends the numbers
--     is_beyond         anon._reaches of the two
CREATE OR REPLACE MACRO anon._end_code(caller, parameter, value, bound, is_beyond, category) AS
    CASE WHEN coalesce(isnan(anon._exact_number(bound)), TRY_CAST(CAST(bound AS VARCHAR) AS DATE) IS NULL)
              THEN anon._refused(caller, parameter, 'a number or a date', bound)
         WHEN value IS NULL THEN NULL
         WHEN anon._kind(typeof(value)) NOT IN ('numeric', 'date')
              OR (typeof(value) IN ('FLOAT', 'DOUBLE') AND isnan(TRY_CAST(value AS DOUBLE)))
              THEN anon._refused_cell(caller, 'value', 'a number other than NaN, a date or a timestamp', value)
         WHEN CASE WHEN regexp_matches(typeof(value), 'DATE|TIME') THEN TRY_CAST(CAST(bound AS VARCHAR) AS DATE) IS NULL
                   ELSE anon._exact_number(bound) IS NULL END
              THEN anon._refused(caller, parameter, 'a number where value is a number, a date where it is a date',
                                 bound)
         WHEN is_beyond IS DISTINCT FROM false THEN category || CAST(bound AS VARCHAR)
         ELSE anon._equal_text(value) END;
