-- Coarser values, and what they cost. Run it on a database that population.sql made:
--     duckanon run examples/population.sql --db clinic.duckdb --create && duckanon run examples/generalize.sql --db clinic.duckdb

-- how many classes may there be so that everyone has ten equals among 20 million people, and what may each column keep?
SELECT anon.distinct_budget(20_000_000, 10) AS classes, anon.allocate(anon.distinct_budget(20_000_000, 10), [2, 22_000, 400]) AS kept;
FROM anon.anonymity_probability(20_000_000, 1_200_000, 10);

-- one column: equal buckets, exactly and from a sample, and the buckets that lose least
CREATE OR REPLACE TABLE bmi_quarters AS FROM anon.quantile_partition('patients', 'bmi', buckets := 4);
FROM bmi_quarters;
FROM anon.sampled_partition('patients', 'bmi', 4);
FROM anon.optimal_partition('patients', 'bmi', 20_000);
FROM anon.apply_partition('patients', 'bmi', 'bmi_quarters', keep := ['glucose']) LIMIT 3;

-- all columns: a plan that can be read, stored and applied again
CREATE OR REPLACE TABLE plan AS FROM anon.plan('patients', ['sex', 'dob', 'zip'], 10);
FROM anon.explain_plan('plan', tbl := 'patients');
FROM anon.apply_plan('patients', 'plan', keep := ['glucose']) LIMIT 3;
FROM anon.kept_column_risk('patients', ['sex', 'dob', 'zip'], ['age', 'glucose'], plan := 'plan');
FROM anon.plan_coverage('patients', 'plan');

-- or in one step, with the promise counted
CREATE OR REPLACE TABLE generalized AS FROM anon.generalize('patients', ['sex', 'dob', 'zip'], k := 10, keep := ['glucose']);
SELECT anon.sample_class_size(10, 0.1 * 0.99, 1_000_000, 100_000) AS people_a_class_in_a_tenth_of_a_population;
FROM anon.k_anonymity('generalized', ['sex', 'dob', 'zip']);
FROM anon.generalization_loss('patients', 'generalized', ['sex', 'dob', 'zip'], k := 10);
FROM anon.suppressed('patients', 'generalized', ['sex', 'dob', 'zip']);

-- value by value
CREATE OR REPLACE TABLE coarse AS
SELECT sex, anon.generalize_date(dob, '5 years') AS dob, anon.generalize_prefix(zip, 3) AS zip,
       anon.generalize_range(bmi, 2.5) AS bmi, anon.top_code(glucose, 140) AS glucose, occupation
FROM patients;
FROM coarse LIMIT 3;
SELECT anon.bottom_code(age, 22) AS label, count(*) AS people FROM patients GROUP BY label ORDER BY min(age) LIMIT 3;

-- what the HIPAA safe harbor leaves of places, ages and dates
SELECT anon.safe_harbor_zip(zip) AS zip, anon.safe_harbor_age(age) AS age,
       anon.safe_harbor_date(dob, as_of := DATE '2026-01-01') AS born
FROM patients ORDER BY patient_id LIMIT 3;

-- a hierarchy is a table: the value first, then its label of level 1, of level 2, ...
CREATE OR REPLACE TABLE occupation_hierarchy AS FROM (VALUES
    ('nurse', 'health and teaching', 'working', '*'), ('teacher', 'health and teaching', 'working', '*'),
    ('clerk', 'office', 'working', '*'), ('judge', 'office', 'working', '*'), ('engineer', 'office', 'working', '*'),
    ('driver', 'hands', 'working', '*'), ('farmer', 'hands', 'working', '*'), ('cook', 'hands', 'working', '*'),
    ('retired', 'not working', 'not working', '*'), ('student', 'not working', 'not working', '*')
) AS t(occupation, field, status, anything);

-- the finest level with at most four labels, joined back
CREATE OR REPLACE TABLE coarser AS
SELECT coarse.* REPLACE (label AS occupation)
FROM coarse JOIN anon.hierarchy_level('patients', 'occupation', 'occupation_hierarchy', 4) ON occupation = value;

-- rows that fewer than ten share are left out; what is lost?
CREATE OR REPLACE TABLE released AS
SELECT sex, dob, zip, occupation FROM coarser QUALIFY count(*) OVER (PARTITION BY sex, dob, zip, occupation) >= 10;
FROM anon.generalization_loss('patients', 'released', ['sex', 'dob', 'zip', 'occupation'], k := 10,
                              hierarchies := MAP {'occupation': 'occupation_hierarchy'});

-- rows that stay linked: whoever knows two visits of a patient finds at least five patients
CREATE OR REPLACE TABLE visits AS
SELECT patient_id, 1 + (glucose // (visit + 1)) % 4 AS ward, 1 + (age + glucose // (visit + 2)) % 12 AS month
FROM patients, range(3) AS t(visit) WHERE patient_id <= 'P001000';
CREATE OR REPLACE TABLE linked_visits AS FROM anon.release_linked(['visits'], 'patient_id', ['ward', 'month'], 5);
FROM anon.known_events(['linked_visits'], 'patient_id', ['ward', 'month'], known := 2);
