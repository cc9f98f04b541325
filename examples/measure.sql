-- Releases to compare with, and every measure once. Run it on a database that population.sql made:
--     duckanon run examples/population.sql --db clinic.duckdb --create && duckanon run examples/measure.sql --db clinic.duckdb
CREATE OR REPLACE TABLE members AS
SELECT patient_id, sex, age, bmi, glucose, occupation FROM patients WHERE patient_id <= 'P001000';
CREATE OR REPLACE TABLE others AS
SELECT patient_id, sex, age, bmi, glucose, occupation FROM patients WHERE patient_id BETWEEN 'P001001' AND 'P002000';

-- how small may clusters be?
FROM anon.pica_report('members', ['sex', 'age', 'bmi', 'glucose'], basis := 'pca', clustering := 'bisect', reference := 'others');

-- the release to recommend: new records that keep what belongs together, of values that many people share
CREATE OR REPLACE TABLE synthetic AS FROM anon.synthesize('members', ['sex', 'age', 'bmi', 'glucose', 'occupation']);

-- the same promise in clusters with which isolated people are hardly recognised
CREATE OR REPLACE TABLE spectral AS FROM anon.spectral_release('members', ['sex', 'age', 'bmi', 'glucose', 'occupation'], cluster_size := 200);

-- what the thesis compares with: noise, shuffling, microaggregation in all columns at once, draws from a copula
CREATE OR REPLACE TABLE noisy AS
FROM anon.additive_noise('members', ['patient_id', 'sex', 'age', 'bmi', 'glucose', 'occupation'], key := 'patient_id');
CREATE OR REPLACE TABLE shuffled AS FROM anon.data_shuffle('members', ['sex', 'age', 'bmi', 'glucose', 'occupation']);
CREATE OR REPLACE TABLE drawn AS FROM anon.copula_synthesize('members', ['sex', 'age', 'bmi', 'glucose', 'occupation'], rows := 2000);
CREATE OR REPLACE TABLE split AS FROM anon.rhs('members', ['age', 'bmi', 'glucose'], 5, checks := 'off');
CREATE OR REPLACE TABLE grouped AS FROM anon.spectral_rhs('members', ['sex', 'age', 'bmi', 'glucose', 'occupation'], 5);

-- what all members have in common, and some new records have not
SELECT rule, released_rows, released_broken FROM anon.contradictions('members', 'spectral', ['sex', 'age', 'bmi', 'glucose', 'occupation']);

-- an attacker who knows everything about a person, or some of it
SELECT record.age, record.bmi, distance, ambiguity, uncertainty
FROM anon.prediction_risk('members', 'noisy', ['sex', 'age', 'bmi', 'glucose', 'occupation']) ORDER BY distance LIMIT 3;
FROM anon.matching_attack('members', 'noisy', ['sex', 'age', 'bmi', 'glucose', 'occupation'], key := 'patient_id');
FROM anon.membership_audit('members', ['sex', 'age', 'bmi', 'glucose', 'occupation'], method := 'additive_noise', releases := 4);
FROM anon.linkage_risk('members', 'noisy', ['sex', 'age', 'bmi'], ['glucose', 'occupation'], control := 'others');
FROM anon.singling_out_risk('members', 'shuffled', ['sex', 'age', 'bmi', 'glucose', 'occupation'], control := 'others', attacks := 500);

-- a generalized release: how many rows may be mine?
CREATE OR REPLACE TABLE coarse AS FROM anon.generalize('members', ['sex', 'age', 'occupation'], k := 10);
SELECT candidates, count(*) AS people FROM anon.containment_candidates('members', 'coarse', ['sex', 'age', 'occupation'])
GROUP BY candidates ORDER BY candidates LIMIT 5;
-- the same people once more, in other classes: how many candidates do both releases leave?
CREATE OR REPLACE TABLE later AS SELECT patient_id, age // 10 AS age, sex FROM members;
CREATE OR REPLACE TABLE earlier AS SELECT patient_id, (age + 5) // 10 AS age, sex FROM members;
SELECT release, k, joint_k, people_below_k FROM anon.joint_releases(['earlier', 'later'], ['sex', 'age'], 'patient_id');
-- the same judge as for new records; a job would stop here if a promise were broken
FROM anon.require('members', 'coarse', ['sex', 'age', 'occupation'], k := 10, seed := 1);

-- an analyst
SELECT DISTINCT statistic, median_difference FROM anon.utility('members', 'drawn', ['sex', 'age', 'bmi', 'glucose', 'occupation']);
FROM anon.kernel_utility('members', 'drawn', ['sex', 'age', 'bmi', 'glucose'], components := 5, reference := 'others');
SELECT source, projections[1] AS x, projections[2] AS y
FROM anon.kernel_components('members', 'drawn', ['sex', 'age', 'bmi', 'glucose'], points := 100) LIMIT 5;
FROM anon.classifier_utility('members', 'drawn', ['sex', 'age', 'bmi'], 'glucose', holdout := 'others');
FROM anon.detectability('members', 'drawn', ['sex', 'age', 'bmi', 'glucose']);
FROM anon.query_utility('members', 'coarse', ['sex', 'occupation']);
