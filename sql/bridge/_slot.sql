-- anon._slot: which of the lists of a released column carries values of this SQL type (the same rule, on Arrow types,
-- is duckanon.bridge.slot_of). A type's name is known when the query is bound, so that the choice is made once per
-- column and leaves no trace in the plan: a CASE over the lists themselves would copy them.
--     i  whole numbers that a BIGINT holds, booleans      f  floats, and decimals that a double holds exactly
--     d  dates      t  timestamps      z  timestamps with a time zone      s  everything else, as text
CREATE OR REPLACE MACRO anon._slot(type_name) AS
    CASE WHEN type_name IN ('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'UTINYINT', 'USMALLINT', 'UINTEGER', 'BOOLEAN') THEN 'i'
         WHEN type_name IN ('DOUBLE', 'FLOAT') THEN 'f'
         WHEN starts_with(type_name, 'DECIMAL') AND TRY_CAST(regexp_extract(type_name, '\d+') AS INTEGER) <= 15 THEN 'f'
         WHEN type_name = 'DATE' THEN 'd'
         WHEN type_name = 'TIMESTAMP' THEN 't'
         WHEN type_name = 'TIMESTAMP WITH TIME ZONE' THEN 'z'
         WHEN type_name = 'TIME WITH TIME ZONE'     -- Arrow has no such type: the zone would be lost on the way
              THEN CAST(anon._refuse('anon: a column of type TIME WITH TIME ZONE cannot be released; cast it to VARCHAR first.')
                        AS VARCHAR)
         ELSE 's' END;
