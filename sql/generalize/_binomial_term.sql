-- anon._binomial_term: P[X = x] of a binomial distribution, for n up to 10^15: the saddle-point form of C. Loader, in
-- which nothing large is subtracted from anything large. Of n, x and n - x: how far ln(x!) is from Stirling's formula,
-- by its series from 16 on and directly below. Of both sides: x ln(x / m) + m - x, by its series where x is so near to
-- m that the difference would have no digits left.
CREATE OR REPLACE MACRO anon._binomial_term(x, n, p) AS
    CASE WHEN x = 0 THEN exp(n * ln(1 - p)) WHEN x = n THEN exp(n * ln(p))
         ELSE exp(list_reduce(list_concat(
                  list_transform(CAST([n, x, n - x] AS DOUBLE[]), lambda size:
                      CASE WHEN size < 16
                                THEN lgamma(size + 1) - (size + 0.5) * ln(greatest(size, 1e-300)) + size
                                     - 0.5 * ln(2 * pi())
                           ELSE (1 / 12.0 - (1 / 360.0 - (1 / 1260.0 - 1 / 1680.0 / (size * size)) / (size * size))
                                            / (size * size)) / size END),
                  list_transform([{'x': CAST(x AS DOUBLE), 'm': CAST(n * p AS DOUBLE)},
                                  {'x': CAST(n - x AS DOUBLE), 'm': CAST(n * (1 - p) AS DOUBLE)}], lambda side:
                      CASE WHEN abs(side.x - side.m) < 0.001 * (side.x + side.m)
                                THEN (side.x - side.m) * (side.x - side.m) / (side.x + side.m)
                                     + 2 * side.x * pow((side.x - side.m) / (side.x + side.m), 3)
                                       * (1 / 3.0 + pow((side.x - side.m) / (side.x + side.m), 2) / 5
                                          + pow((side.x - side.m) / (side.x + side.m), 4) / 7)
                           ELSE side.x * ln(side.x / side.m) + side.m - side.x END)),
              lambda so_far, term: so_far - term))
              * sqrt(n / (2 * pi() * x * (n - x))) END;
