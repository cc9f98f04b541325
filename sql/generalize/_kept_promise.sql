-- anon._kept_promise: the least rows that a class must have to be released, after the promise of anon.generalize was
-- counted on the generalized table itself: 0 with a population, k without.
CREATE OR REPLACE MACRO anon._kept_promise(
    population, k, beta, max_suppressed_fraction, row_count, classes, small_rows
) AS
    CASE WHEN population IS NOT NULL AND classes > anon.distinct_budget(coalesce(population, 1), k, beta)
              THEN anon._refuse('anon.generalize: the table still has ' || classes
                                || ' classes, more than the budget allows.')
         WHEN population IS NOT NULL THEN 0
         WHEN small_rows > max_suppressed_fraction * row_count + 1e-6
              THEN anon._refuse('anon.generalize: ' || small_rows || ' rows are in classes under ' || k
                                || ', more than may be left out.')
         ELSE k END;
