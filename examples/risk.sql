-- The risk of every record and of the whole table, by the measures of statistical offices.

-- the page to begin with
FROM anon.risk_summary('patients', ['sex', 'age', 'occupation'], population := 3_000_000, sensitive := 'smoker');

-- who is at risk most, if the table is a sample of three million people
SELECT patient_id, sex, age, occupation, sample_frequency, risk
FROM anon.individual_risk('patients', ['sex', 'age', 'occupation'], population := 3_000_000)
ORDER BY risk DESC, patient_id ASC LIMIT 5;

-- how many would be found again, and which column contributes most
FROM anon.global_risk('patients', ['sex', 'age', 'occupation'], population := 3_000_000, target := 0.001);

-- who is noticed first: rows that few columns make unique, and the column that does most of it
SELECT patient_id, sex, age, occupation, unique_sets, sets_by_size, suda_score
FROM anon.special_uniques('patients', ['sex', 'age', 'occupation', 'zip'], max_size := 3)
ORDER BY suda_score DESC, patient_id ASC LIMIT 5;
FROM anon.special_unique_columns('patients', ['sex', 'age', 'occupation', 'zip'], max_size := 3);

-- how many people of the three million nobody else equals, by six methods
FROM anon.population_uniques('patients', ['sex', 'age', 'occupation'], 3_000_000);

-- a tenth of the patients in a study: how many people of the clinic share their values, and who must be in the study
CREATE OR REPLACE TEMP TABLE study AS FROM patients WHERE hash(patient_id) % 10 = 0;
FROM anon.k_map('study', ['sex', 'age'], 'patients');
FROM anon.k_map('study', ['sex', 'age'], 3_000_000);
FROM anon.delta_presence('study', ['sex', 'age'], 'patients');
FROM anon.reidentification_risk('study', ['sex', 'age'], population := 'patients');

-- what somebody learns about occupations who knows a patient's sex and age
FROM anon.sensitive_risk('patients', ['sex', 'age'], 'occupation');
FROM anon.sensitive_risk_classes('patients', ['sex', 'age'], 'occupation', c := 3) LIMIT 5;

-- values that noise does not hide: how many originals lie within a twentieth of a standard deviation of what is released
CREATE OR REPLACE TEMP TABLE numbered AS SELECT row_number() OVER () AS id, bmi::DOUBLE AS bmi, glucose FROM patients;
CREATE OR REPLACE TEMP TABLE noisy AS SELECT id, bmi + 0.4 * sin(id) AS bmi, glucose + 2 * cos(id) AS glucose FROM numbered;
FROM anon.interval_disclosure('numbered', 'noisy', ['bmi', 'glucose'], key := 'id');
