-- anon.safe_harbor_age: an age by the HIPAA safe harbor, 45 CFR 164.514(b)(2)(i)(C): whole years, and one category,
-- 90+, for everybody over 89. The result is text. NULL stays NULL.
--     age  age in years; a fraction is cut off, since it discloses the month of birth [a number, at least 0]
-- promises: FunctionOfValue(), TrueLabels()
-- test: tests/generalize/safe_harbor_age.test
CREATE OR REPLACE MACRO anon.safe_harbor_age(age) AS
    CASE WHEN age IS NULL THEN NULL
         WHEN NOT coalesce(anon._exact_number(age) >= 0 AND isfinite(anon._exact_number(age)), false)
              THEN anon._refused_cell('anon.safe_harbor_age', 'age', 'a number of years of at least 0', age)
         WHEN anon._exact_number(age) >= 90 THEN '90+'
         ELSE CAST(CAST(floor(anon._exact_number(age)) AS INTEGER) AS VARCHAR) END;
COMMENT ON MACRO anon.safe_harbor_age IS
    'An age in whole years, all ages over 89 as one category 90+ (HIPAA safe harbor).';
