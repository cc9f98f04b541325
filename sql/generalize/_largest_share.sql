-- anon._largest_share: the share q of the people that each class must have in expectation, so that fewer than `k` of
-- `n` people fall into it with probability `beta`: P[X < k] = beta, X binomial with n and q. NULL where n < k.
-- Newton's steps on ln P[X < k], which is concave in q: from a share that is too large each step leads to a smaller one
-- that is still too large, so that no step could end at a share that breaks the promise. `start` is such a share. The
-- tail is its largest term, P[X = k - 1], times the sum of its terms' ratios, which Horner's rule adds up from the end.
-- Far from the root, at shares near 1, some twenty steps are needed, else five. P[X < 1] and P[X < n] are powers, whose
-- roots are written down; that of 1 - beta^(1/n) by its series where the difference would lose all digits.
CREATE OR REPLACE MACRO anon._largest_share(n, k, beta, start) AS
    CASE WHEN n < k THEN NULL
         WHEN k = 1 THEN list_transform([-ln(beta) / n], lambda x:
             CASE WHEN x < 1e-4 THEN x - x * x / 2 + x * x * x / 6 ELSE 1 - exp(-x) END)[1]
         WHEN n = k THEN pow(1 - beta, 1 / n)
         ELSE list_reduce(
             list_concat([least(start, 1 - 1e-6)],
                          list_transform(range(CASE WHEN start > 0.1 THEN 40 ELSE 8 END), lambda step: 0.0)),
             lambda share, step: list_transform(
                 [list_reduce(list_concat([1.0], list_transform(
                     range(CAST(least(k - 1, 200 + 20 * sqrt(n * share + k)) AS BIGINT), 0, -1), lambda back:
                         (k - back) * (1 - share) / ((n - k + back + 1) * share))),
                     lambda so_far, ratio: 1 + ratio * so_far)], lambda terms:
                 share + (ln(anon._binomial_term(k - 1, n, share)) + ln(terms) - ln(beta))
                         * (1 - share) * terms / (n - k + 1))[1]) END;
