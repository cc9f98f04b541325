-- anon._list_text: a list of values as the label that anon.recode writes for it: the value itself where there is one, a
-- set '{a, b}' of several, in which NULL is named.
CREATE OR REPLACE MACRO anon._list_text(listed) AS
    CASE WHEN len(listed) = 1 THEN listed[1]
         ELSE '{' || anon._joined(list_transform(listed, lambda value: coalesce(value, 'NULL')), ', ') || '}' END;
