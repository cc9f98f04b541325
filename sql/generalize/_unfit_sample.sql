-- anon._unfit_sample: the sentence that refuses a column which cannot be sampled and cut; NULL where it can.
CREATE OR REPLACE MACRO anon._unfit_sample(caller, col, column_type, is_inexact, is_finite) AS
    caller || ': column "' || col || '" '
    || CASE WHEN anon._kind(column_type) NOT IN ('numeric', 'date')
                 THEN 'must hold numbers, dates or timestamps; its type is ' || column_type || '.'
            WHEN NOT is_finite THEN 'holds NaN or infinity; replace them by NULL or a number first.'
            WHEN is_inexact
                 THEN 'holds numbers that a double does not tell apart (whole ones from 2^53 on, decimals of more than '
                      || '15 digits, microseconds far from 1970); divide or round it, or cast it to DOUBLE.' END;
