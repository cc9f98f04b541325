-- anon._list_text: a list of values as the label that anon.recode writes for it: the value itself where there is one, a
-- set '{a, b}' of several, in which NULL is named. A value that looks like a set, or is '*', is written as a set even
-- alone. In a set, a value is in quotation marks where it would be read as several, as NULL, or as the end of the set;
-- marks within it are doubled (duckanon/_core/common/sets.py).
CREATE OR REPLACE MACRO anon._list_text(listed) AS
    CASE WHEN len(listed) = 1 AND (listed[1] = '*' OR starts_with(listed[1], '{')) IS NOT TRUE THEN listed[1]
         ELSE '{' || anon._joined(list_transform(listed, lambda value:
                         CASE WHEN value IS NULL THEN 'NULL'
                              WHEN value IN ('', 'NULL', '*') OR regexp_matches(value, '[,{}"]')
                                   THEN '"' || replace(value, '"', '""') || '"'
                              ELSE value END), ', ') || '}' END;
