-- anon._list_text: a list of values as the label that anon.recode writes for it: the value itself where there is one
-- (anon._value_label), a set '{a, b}' of several, in which NULL is named. In a set, a value is in quotation marks where
-- it would be read as several, as NULL, as the end of the set, or as a label; marks within it are doubled. In the list
-- 'other' or '{other}' stands for values that are not named, and '{"other"}' is the value
-- (duckanon/_core/common/labels.py).
CREATE OR REPLACE MACRO anon._list_text(listed) AS
    CASE WHEN len(listed) = 1 AND (listed[1] <> '{other}' AND (starts_with(listed[1], '{')
                                                               OR ends_with(listed[1], '*'))) IS NOT TRUE THEN listed[1]
         ELSE '{' || anon._joined(list_transform(listed, lambda value:
                         CASE WHEN value IS NULL THEN 'NULL'
                              WHEN value = '{other}' THEN 'other'
                              WHEN regexp_full_match(value, '\{"([^"]|"")*"\}') THEN value[2:-2]
                              WHEN value IN ('', 'NULL') OR ends_with(value, '*') OR regexp_matches(value, '[,{}"]')
                                   THEN '"' || replace(value, '"', '""') || '"'
                              ELSE value END), ', ') || '}' END;
