-- anon._type_of: the name of a value's type, known when the query is bound. typeof() knows it only later where the type
-- is that of NULL itself, as in CREATE TABLE n AS SELECT NULL AS nothing: "NULL", with its quotes.
CREATE OR REPLACE MACRO anon._type_of(value) AS
    regexp_extract(typeof(struct_pack(v := value)), '(?s)^STRUCT\(v (.*)\)$', 1);
