-- The whole workflow: a table about people is assessed, generalized, boxed, released as new records in three ways, and measured.
-- Run it on a database that population.sql made:
--     mkdir -p build/demo
--     duckanon run examples/population.sql --db clinic.duckdb --create && duckanon run examples/road.sql --db clinic.duckdb

-- 1. two samples that share nobody: the members, whose table will leave the building, and others to compare with
CREATE OR REPLACE TABLE parted AS
WITH clinic AS (FROM patients WHERE patient_id <= 'P004000')
FROM anon.split_reference('clinic', fraction := 0.5);
CREATE OR REPLACE TABLE members AS SELECT * EXCLUDE (is_reference) FROM parted WHERE NOT is_reference;
CREATE OR REPLACE TABLE others AS SELECT * EXCLUDE (is_reference) FROM parted WHERE is_reference;
SELECT (SELECT count(*) FROM members) AS members, (SELECT count(*) FROM others) AS others;

-- 2. assess: who can be picked out, and by what?
SELECT column_name, category FROM anon.direct_identifiers('members');
SELECT columns, distinct_observed, unique_fraction
FROM anon.quasi_identifiers('members', ['sex', 'dob', 'zip', 'occupation'], max_size := 2) ORDER BY unique_fraction DESC LIMIT 4;
SELECT k, classes, "rows" FROM anon.k_anonymity('members', ['sex', 'dob', 'zip']);

-- 3. generalize: coarser values, so that everyone has at least nine others who look the same
CREATE OR REPLACE TABLE generalized AS
FROM anon.generalize('members', ['sex', 'age', 'zip', 'occupation'], k := 10);
SELECT sex, age, zip, occupation FROM generalized LIMIT 3;
SELECT attacker, maximum_risk, rows_at_risk FROM anon.containment_risk('members', 'generalized', ['sex', 'age', 'zip', 'occupation']);

-- 4. boxes: intervals that ten records share, with statistics that are guaranteed
CREATE OR REPLACE TABLE boxed AS FROM anon.boxes('members', ['age', 'bmi', 'glucose'], 10);
SELECT statistic, columns, lower, upper FROM anon.interval_statistics('boxed', ['bmi', 'glucose']) WHERE statistic = 'mean';

-- 5. release: new records with the same statistics, three ways; the first is the one to recommend
CREATE OR REPLACE TABLE synthetic AS
FROM anon.synthesize('members', ['sex', 'age', 'bmi', 'glucose', 'smoker', 'occupation'], nulls := 'category');
CREATE OR REPLACE TABLE swapped AS
FROM anon.svd_swap('members', ['sex', 'age', 'bmi', 'glucose', 'smoker', 'occupation'], nulls := 'category');
CREATE OR REPLACE TABLE clustered AS
FROM anon.pica('members', ['sex', 'age', 'bmi', 'glucose', 'smoker', 'occupation'], basis := 'pca', clustering := 'bisect',
               reference := 'others', nulls := 'category', checks := 'repair');
FROM synthetic LIMIT 3;

-- 6. measure: what would an attacker learn? Each row of the test, for each release
SELECT 'synthetic' AS release, measure, round(value, 3) AS value, round(reference_value, 3) AS reference, round(shift_bound, 3) AS bound,
       round("limit", 3) AS "limit", pass
FROM anon.privacy_test('members', 'synthetic', ['sex', 'age', 'bmi', 'glucose', 'smoker', 'occupation'], reference := 'others')
UNION ALL
SELECT 'clustered', measure, round(value, 3), round(reference_value, 3), round(shift_bound, 3), round("limit", 3), pass
FROM anon.privacy_test('members', 'clustered', ['sex', 'age', 'bmi', 'glucose', 'smoker', 'occupation'], reference := 'others');

-- 7. measure: what did the analyst lose? A risk-utility map: privacy below the limits, utility beside that of another sample
CREATE OR REPLACE TABLE compared AS
FROM anon.compare_releases('members', MAP {'synthetic': 'synthetic', 'swapped': 'swapped', 'clustered': 'clustered'},
                           ['sex', 'age', 'bmi', 'glucose', 'smoker', 'occupation'], reference := 'others');
SELECT kind, measure, round(max(value) FILTER (release = 'synthetic'), 3) AS synthetic,
       round(max(value) FILTER (release = 'swapped'), 3) AS swapped, round(max(value) FILTER (release = 'clustered'), 3) AS clustered,
       round(any_value(reference_value), 3) AS another_sample
FROM compared GROUP BY kind, measure ORDER BY kind, measure;

-- 8. the decision
SELECT promise, round(measured, 3) AS measured, round("limit", 3) AS "limit", pass
FROM anon.verdict('members', 'synthetic', ['sex', 'age', 'bmi', 'glucose', 'smoker', 'occupation'], reference := 'others',
                  max_correlation_difference := 0.05, max_detectability_auc := 0.9);

COPY synthetic TO 'build/demo/synthetic.csv';
