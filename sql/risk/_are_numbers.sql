-- anon._are_numbers: true for a column of numbers, an error for any other: a type is known before a row is read. The
-- types are those of anon._kind, which takes four times as long to bind.
CREATE OR REPLACE MACRO anon._are_numbers(caller, value) AS
    CASE WHEN regexp_full_match(typeof(value),
                                'U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|BIGNUM|FLOAT|DOUBLE|DECIMAL\([\d, ]*\)') THEN true
         ELSE error(concat(caller, ': cols must name columns of numbers; got ', alias(value), ', which is ',
                           typeof(value), '.')) END;
