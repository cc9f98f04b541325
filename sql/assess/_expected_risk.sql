-- anon._expected_risk: the expected 1/F for a class of `class_size` rows, F the number of people in the population who
-- share its values, when every person is in the table with probability `sampled_fraction`, whoever they are: F is then
-- negative binomial. Exact for classes of one and two rows, within half a percent above.
-- (Benedetti and Franconi 1998, the estimator of mu-Argus)
CREATE OR REPLACE MACRO anon._expected_risk(class_size, sampled_fraction) AS
    CASE WHEN class_size = 1 AND sampled_fraction < 0.9999 THEN sampled_fraction / (1 - sampled_fraction) * -ln(sampled_fraction)
         WHEN class_size = 2 AND sampled_fraction < 0.9999
              THEN (sampled_fraction * sampled_fraction * ln(sampled_fraction) + sampled_fraction * (1 - sampled_fraction))
                   / ((1 - sampled_fraction) * (1 - sampled_fraction))
         ELSE sampled_fraction / (class_size - (1 - sampled_fraction)) END;
