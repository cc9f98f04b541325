-- anon._zip_digits: the digits of a US ZIP code, with the leading zeros that a number loses: five, nine for ZIP+4, or
-- three where the text has only three (it was cut before); NULL where it is no ZIP code.
CREATE OR REPLACE MACRO anon._zip_digits(zip) AS
    CASE WHEN anon._kind(typeof(zip)) = 'text' AND regexp_full_match(trim(CAST(zip AS VARCHAR)), '\d{3}')
              THEN trim(CAST(zip AS VARCHAR))
         WHEN regexp_full_match(trim(CAST(zip AS VARCHAR)), '\d{1,5}(\.0)?')
              THEN lpad(string_split(trim(CAST(zip AS VARCHAR)), '.')[1], 5, '0')
         WHEN regexp_full_match(trim(CAST(zip AS VARCHAR)), '\d{5}[- ]\d{4}|\d{7,9}(\.0)?')
              THEN lpad(regexp_replace(string_split(trim(CAST(zip AS VARCHAR)), '.')[1], '[- ]', ''), 9, '0') END;
