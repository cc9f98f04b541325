-- anon._list_text: a list of values as the label that anon.recode writes for it: the value itself where there is one, a
-- set '{a, b}' of several, in which NULL is named (anon._set_member). A value that looks like a set, or is '*', is
-- written as a set even alone.
CREATE OR REPLACE MACRO anon._list_text(listed) AS
    CASE WHEN len(listed) = 1 AND (listed[1] = '*' OR starts_with(listed[1], '{')) IS NOT TRUE THEN listed[1]
         ELSE '{' || anon._joined(list_transform(listed, lambda value: anon._set_member(value)), ', ') || '}' END;
