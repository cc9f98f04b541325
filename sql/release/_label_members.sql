-- anon._label_members: the values that a label names: those of '{a, b}', or the label itself. Values in quotation marks
-- are read as anon._list_text writes them. Without marks NULL is NULL, and 'other' is no value, but chr(29).
CREATE OR REPLACE MACRO anon._label_members(label) AS
    CASE WHEN label[1] = '{' AND label[-1] = '}'
              THEN list_transform(regexp_extract_all(label[2:-2], '(?:^|, )("(?:[^"]|"")*"|(?:[^,]|,[^ ])*)', 1),
                                  lambda member:
                                      CASE WHEN member = 'NULL' THEN NULL
                                           WHEN member = 'other' THEN chr(29)
                                           WHEN length(member) > 1 AND member[1] = '"' AND member[-1] = '"'
                                                THEN replace(member[2:-2], '""', '"')
                                           ELSE member END)
         WHEN label = 'other' THEN [chr(29)]
         ELSE [label] END;
