-- anon._label_members: the values that a label names: those of '{a, b}', or the label itself.
CREATE OR REPLACE MACRO anon._label_members(label) AS
    CASE WHEN label[1] = '{' AND label[-1] = '}' THEN string_split(label[2:-2], ', ') ELSE [label] END;
