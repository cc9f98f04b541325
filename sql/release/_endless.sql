-- anon._endless: the sentence that refuses a column without ends, NULL for intervals, numbers and times.
CREATE OR REPLACE MACRO anon._endless(caller, name, type_name) AS
    CASE WHEN NOT anon._is_interval_type(type_name) AND anon._kind(type_name) NOT IN ('numeric', 'date')
              THEN caller || ': column "' || name || '" must hold intervals STRUCT(lo, hi), as anon.boxes makes them, '
                   || 'or numbers or times; got ' || type_name || '.' END;
