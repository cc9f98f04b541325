-- anon._is_k_map_class: whether a class of so many people of a sample is large enough to say that at least k people of
-- the population are in it: with k of them, so many would come into the sample with a probability of at most the
-- significance (the next larger number than that which is exceeded so rarely). k people are enough in any case.
--     sampled    the sample's share of the population
--     truncated  whether classes that nobody of the sample is in are left out of account
CREATE OR REPLACE MACRO anon._is_k_map_class(size, k, sampled, significance, truncated) AS
    size >= k
    OR CASE WHEN truncated
                 THEN size >= 2 AND anon._poisson_below(size - 1, k * sampled) - exp(-k * sampled)
                                    >= (1 - significance) * (1 - exp(-k * sampled))
            ELSE size >= 2 AND anon._poisson_below(size - 2, k * sampled) >= 1 - significance END;
