-- anon._class_risk: the risk of a class: the expected 1/F, F the people of the population who share its values.
--     frequency  rows of the table, or people; may lie between whole numbers where NULL counts as a part of a match
--     weight     what they stand for in the population; less than the rows themselves counts as the rows
--     method     'exact', or 'approximate' as sdcMicro has it for classes of more than two
-- A class of nobody whose name is known has risk 1.
CREATE OR REPLACE MACRO anon._class_risk(frequency, weight, method) AS
    CASE WHEN frequency = 0 THEN 1
         WHEN weight <= frequency THEN 1 / frequency
         WHEN method = 'approximate' AND frequency > 2
              THEN frequency / weight / (frequency - 1 + frequency / weight)
         ELSE anon._expected_risk(frequency, frequency / weight) END;
