-- anon._slot: one column of what a Python function returned, as a list of the type that `col` has.
-- A released column is a struct of lists, of which the one for its type is filled (_bridge.slots.slot_of is the
-- same rule on Arrow types):
--     f  floats, and decimals that a double holds exactly      i  whole numbers that a BIGINT holds, booleans
--     d  dates      t  timestamps      z  timestamps with a time zone      s  everything else, as text
-- Texts of a type that has no room for a label, such as `other`, become NULL where one stands for rare values.
-- A type's name is known when the query is bound, so that the choice is made once per column and leaves no trace in the
-- plan: a CASE over the lists themselves would copy them.
CREATE OR REPLACE MACRO anon._slot(released, name, col) AS
    CASE WHEN typeof(col) IN ('DOUBLE', 'FLOAT')
              THEN cast_to_type(anon._released(released, name).f, [col])
         WHEN typeof(col) IN ('BIGINT', 'INTEGER', 'SMALLINT', 'TINYINT', 'UINTEGER', 'USMALLINT', 'UTINYINT',
                              'BOOLEAN')
              THEN cast_to_type(anon._released(released, name).i, [col])
         WHEN typeof(col) = 'DATE'
              THEN cast_to_type(anon._released(released, name).d, [col])
         WHEN typeof(col) = 'TIMESTAMP'
              THEN cast_to_type(anon._released(released, name).t, [col])
         WHEN typeof(col) = 'TIMESTAMP WITH TIME ZONE'
              THEN cast_to_type(anon._released(released, name).z, [col])
         WHEN TRY_CAST(regexp_extract(typeof(col), '^DECIMAL\((\d+)', 1) AS INTEGER) <= 15
              THEN cast_to_type(anon._released(released, name).f, [col])
         WHEN typeof(col) = 'TIME WITH TIME ZONE'     -- Arrow has no such type: the zone would be lost on the way
              THEN cast_to_type([anon._refuse('anon: column "' || name || '" is of type TIME WITH TIME ZONE, which '
                                              || 'cannot be released; cast it to VARCHAR first.')], [col])
         WHEN typeof(col) = 'UUID'
              THEN cast_to_type(TRY_CAST(anon._released(released, name).s AS UUID[]), [col])
         WHEN typeof(col) = 'JSON'
              THEN cast_to_type(TRY_CAST(anon._released(released, name).s AS JSON[]), [col])
         ELSE cast_to_type(anon._released(released, name).s, [col]) END;
