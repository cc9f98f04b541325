-- anon._kind: what a column's type is to a statistician: numeric, date, text, boolean or other.
CREATE OR REPLACE MACRO anon._kind(type_name) AS
    CASE WHEN type_name = 'BOOLEAN' THEN 'boolean'
         WHEN regexp_matches(type_name, '[\[\]]|^(STRUCT|MAP|UNION)\(') THEN 'other'
         WHEN regexp_matches(type_name, '^U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?$|^(BIGNUM|FLOAT|DOUBLE|DECIMAL\(.*)$')
              THEN 'numeric'
         WHEN regexp_matches(type_name, '^(DATE|TIMESTAMP.*)$') THEN 'date'
         WHEN type_name IN ('VARCHAR', 'UUID') OR starts_with(type_name, 'ENUM(') THEN 'text'
         ELSE 'other' END;
