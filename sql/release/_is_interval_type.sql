-- anon._is_interval_type: whether a type is that of intervals: STRUCT(lo, hi) of numbers or of times. An end that is
-- open in all of them may have no type.
CREATE OR REPLACE MACRO anon._is_interval_type(type_name) AS
    regexp_full_match(type_name, 'STRUCT\(lo (U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|BIGNUM|FLOAT|DOUBLE|DECIMAL\([0-9,]+\)'
                                 '|DATE|TIMESTAMP[_A-Z ]*|"NULL"), hi (U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|BIGNUM|FLOAT'
                                 '|DOUBLE|DECIMAL\([0-9,]+\)|DATE|TIMESTAMP[_A-Z ]*|"NULL")\)');
