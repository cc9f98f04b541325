-- What is in the table, and the plainest release of it. Run it on a database that population.sql made.

-- the functions that are there
SELECT stage, string_agg(name, ', ') AS functions
FROM (SELECT *, row_number() OVER () AS place FROM anon.functions()) GROUP BY stage ORDER BY min(place);

-- a few of the people
FROM patients LIMIT 3;

-- who could be picked out by what? A column with as many values as rows names everybody
FROM anon.column_profile('patients');
SELECT column_name, role, why FROM anon.assess('patients');

-- coarser values, so that everyone has at least nine others who look the same in them; what does that lose?
CREATE OR REPLACE TABLE generalized AS
FROM anon.generalize('patients', ['sex', 'dob', 'zip'], k := 10, keep := ['glucose', 'smoker']);
SELECT k, classes, "rows" FROM anon.k_anonymity('generalized', ['sex', 'dob', 'zip']);
SELECT column_name, labels, ncp FROM anon.generalization_loss('patients', 'generalized', ['sex', 'dob', 'zip'], k := 10);

-- the plainest release: every column keeps its values, no person keeps a row
CREATE OR REPLACE TABLE swapped AS FROM anon.swap('patients', ['sex', 'dob', 'zip', 'age', 'bmi', 'glucose', 'smoker']);
FROM swapped LIMIT 3;

-- averages are the same to the last digit; what belonged together is gone, which is why there are better releases
SELECT source, avg(bmi) AS mean_bmi, avg(glucose) AS mean_glucose, corr(bmi, glucose) AS correlation
FROM (SELECT 'patients' AS source, bmi, glucose FROM patients UNION ALL SELECT 'swapped', bmi, glucose FROM swapped)
GROUP BY source ORDER BY source;

COPY swapped TO 'build/demo/swapped.csv';
