-- anon._checked_sample: passes `result` on where a sample can be drawn as asked, refuses it otherwise. DuckDB keeps
-- fewer than a million rows of a sample.
CREATE OR REPLACE MACRO anon._checked_sample(caller, buckets, epsilon, delta, sample_rows, label, result) AS
    anon._checked_open_fraction(caller, 'delta', delta, anon._checked_open_fraction(caller, 'epsilon', epsilon,
        CASE WHEN anon._sample_size(epsilon, delta, sample_rows) NOT BETWEEN 1 AND 999999
                  THEN error(caller || ': a sample must have 1 to 999999 rows; got '
                                    || anon._sample_size(epsilon, delta, sample_rows) || ', choose a larger epsilon.')
             ELSE anon._checked_whole(caller, 'buckets', buckets, 1,
                      anon._checked_choice(caller, 'label', label, ['interval', 'median', 'mean'], result)) END));
