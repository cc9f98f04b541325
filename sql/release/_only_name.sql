-- anon._only_name: the name of a column, from the type of a struct that holds nothing else. Unlike alias() it is known
-- when the query is bound, so that a field of another struct can be taken by it.
CREATE OR REPLACE MACRO anon._only_name(struct_type) AS
    CASE WHEN starts_with(struct_type, 'STRUCT("')
              THEN replace(regexp_extract(struct_type, '^STRUCT\("((?:[^"]|"")*)" ', 1), '""', '"')
         ELSE regexp_extract(struct_type, '^STRUCT\(([^ ]+) ', 1) END;
