-- anon._identifier: a name in quotes, for statements that are put together for query().
CREATE OR REPLACE MACRO anon._identifier(named) AS '"' || replace(named, '"', '""') || '"';
