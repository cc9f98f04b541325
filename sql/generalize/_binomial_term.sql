-- anon._binomial_term: P[X = x] of a binomial distribution, for n up to 10^15: the saddle-point form of C. Loader, in
-- which nothing large is subtracted from anything large.
CREATE OR REPLACE MACRO anon._binomial_term(x, n, p) AS
    CASE WHEN x = 0 THEN exp(n * ln(1 - p)) WHEN x = n THEN exp(n * ln(p))
         ELSE exp(anon._stirling_error(n) - anon._stirling_error(x) - anon._stirling_error(n - x)
                  - anon._deviance(x, n * p) - anon._deviance(n - x, n * (1 - p)))
              * sqrt(n / (2 * pi() * x * (n - x))) END;
