-- anon._date_part: the first, second or third number of a text, of at most four digits; NULL where it has fewer.
CREATE OR REPLACE MACRO anon._date_part(text, place) AS
    TRY_CAST(regexp_extract(text, '^[^0-9]*([0-9]{1,4})[^0-9]+([0-9]{1,4})(?:[^0-9]+([0-9]{1,4}))?', place) AS DOUBLE);
