-- anon._set_member: a value as it stands in a label '{a, b}': in quotation marks where it would be read as several, as
-- NULL, or as the end of the set; marks within it are doubled (duckanon/_core/common/sets.py).
CREATE OR REPLACE MACRO anon._set_member(value) AS
    CASE WHEN value IS NULL THEN 'NULL'
         WHEN value IN ('', 'NULL', '*') OR regexp_matches(value, '[,{}"]')
              THEN '"' || replace(value, '"', '""') || '"'
         ELSE value END;
