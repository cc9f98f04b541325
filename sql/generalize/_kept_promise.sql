-- anon._kept_promise: the least people that a class must have to be released, after the promise of anon.generalize was
-- counted on the generalized table itself.
--     least       k, or what anon.sample_class_size asks of a sample
--     small_rows  the rows of smaller classes
CREATE OR REPLACE MACRO anon._kept_promise(least, max_suppressed_fraction, row_count, small_rows) AS
    CASE WHEN small_rows > max_suppressed_fraction * row_count + 1e-6
              THEN anon._refuse('anon.generalize: ' || small_rows || ' rows are in classes of fewer than ' || least
                                || ' people, more than may be suppressed.')
         ELSE least END;
