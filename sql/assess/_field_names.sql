-- anon._field_names: the names of the fields of a nested type, however deep, as plain names (anon._plain_name):
-- STRUCT("Last Name" VARCHAR, contact STRUCT(email VARCHAR)[]) has last_name, contact and email. Fields that are true
-- or false tell nobody's name and are left out.
--     type_name  as typeof() writes it; what stands in an ENUM's quotes and the words of WITH TIME ZONE are no names
CREATE OR REPLACE MACRO anon._field_names(type_name) AS
    CASE WHEN contains(type_name, 'STRUCT(') OR contains(type_name, 'UNION(')
         THEN list_transform(
                  regexp_extract_all(
                      regexp_replace(
                          regexp_replace(type_name, 'ENUM\((''([^'']|'''')*''(, )?)+\)| WITH TIME ZONE', '', 'g'),
                          '("([^"]|"")*"|[\pL\pN_]+) BOOLEAN([,)])', 'flag BOOLEAN\3', 'g'),
                      '(?:STRUCT\(|UNION\(|, )("(?:[^"]|"")*"|[\pL\pN_]+) ', 1),
                  lambda field: anon._plain_name(field))
         ELSE [] END;
