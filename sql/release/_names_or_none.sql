-- anon._names_or_none: a list of names, with one empty name where it is none, so that a text that is put together of it
-- is no NULL before it was refused.
CREATE OR REPLACE MACRO anon._names_or_none(named) AS coalesce(TRY_CAST(named AS VARCHAR[]), ['']);
