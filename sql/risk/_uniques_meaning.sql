-- anon._uniques_meaning: what a row of anon.population_uniques says, in words.
--     chosen  the method that Dankar's rule takes
--     answer  NULL where the method has none
CREATE OR REPLACE MACRO anon._uniques_meaning(method, chosen, answer) AS
    CASE WHEN answer IS NULL AND starts_with(method, 'log_linear')
              THEN 'No answer: the model is of one combination of values a person, and somebody has several.'
         WHEN answer IS NULL THEN 'No answer: no such distribution has the class sizes of the table.'
         WHEN method = 'zayatz'
              THEN 'People of the population who are alone with their values, if class sizes are as in the table.'
         WHEN method = 'pitman'
              THEN 'The same, if class sizes follow Pitman''s distribution: for samples of up to a tenth.'
         WHEN method = 'snb' THEN 'The same, if class sizes follow a shifted negative binomial distribution.'
         WHEN method = 'dankar' THEN 'The one of these to take, by the rule of Dankar et al.: ' || chosen || '.'
         WHEN method = 'log_linear'
              THEN 'The same, by the values themselves: columns are independent but for the named interactions.'
         ELSE 'By that model, people of the table whom a guess among all with their values would find (the sum of 1/F).'
         END;
