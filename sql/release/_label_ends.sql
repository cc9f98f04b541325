-- anon._label_ends: the two ends of '[20, 34]', or of a number or a date, on the number line, of which one is NULL in
-- '<=20' and '>=34'; NULL for other labels.
CREATE OR REPLACE MACRO anon._label_ends(label) AS
    CASE WHEN label[1] = '[' AND label[-1] = ']'
              THEN list_transform(string_split(label[2:-2], ', '), lambda text: anon._any_number(text))
         WHEN starts_with(label, '<=') AND anon._any_number(label[3:-1]) IS NOT NULL
              THEN [NULL, anon._any_number(label[3:-1])]
         WHEN starts_with(label, '>=') AND anon._any_number(label[3:-1]) IS NOT NULL
              THEN [anon._any_number(label[3:-1]), NULL]
         WHEN anon._any_number(label) IS NOT NULL THEN [anon._any_number(label), anon._any_number(label)] END;
