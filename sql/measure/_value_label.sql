-- anon._value_label: a value as a label: itself, or the set of it, in quotation marks, where it could be read as a
-- label that is made up: 'other', a set '{a, b}', '*', or the beginning of codes '021**'
-- (duckanon/_core/common/labels.py).
CREATE OR REPLACE MACRO anon._value_label(value) AS
    CASE WHEN value = 'other' OR starts_with(value, '{') OR ends_with(value, '*')
              THEN '{"' || replace(value, '"', '""') || '"}'
         ELSE value END;
