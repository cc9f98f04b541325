-- anon._end_types: a regular expression for the types that the ends of intervals can have.
CREATE OR REPLACE MACRO anon._end_types() AS
    'U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|BIGNUM|FLOAT|DOUBLE|DECIMAL\([0-9,]+\)|DATE|TIMESTAMP[_A-Z ]*|"NULL"';
