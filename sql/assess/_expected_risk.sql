-- anon._expected_risk: the expected 1/F for a class of `size` rows, F the number of people in the population who share
-- its values, when every person is in the table with probability p, whoever they are: F is then negative binomial
-- (Benedetti and Franconi 1998, the estimator of mu-Argus). With f = size and q = 1 - p it is p / f times the sum, over
-- the number j of such people who are not in the table, of q^j / C(f + j, j). The sum is cut where it has five digits:
-- the larger the class, the sooner. One and two rows have closed forms.
CREATE OR REPLACE MACRO anon._expected_risk(size, p) AS
    CASE WHEN size = 1 AND p < 0.5 THEN p / (1 - p) * -ln(p)
         WHEN size = 2 AND p < 0.5 THEN (p * p * ln(p) + p * (1 - p)) / ((1 - p) * (1 - p))
         ELSE p / size * list_sum(list_transform(range(greatest(16, 1500 // size)), lambda unseen:
                  pow(1 - p, unseen) * exp(lgamma(unseen + 1) + lgamma(size + 1) - lgamma(size + unseen + 1)))) END;
