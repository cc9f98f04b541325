-- The risk of every record and of the whole table, by the measures of statistical offices.

-- who is at risk most, if the table is a sample of three million people
SELECT patient_id, sex, age, occupation, sample_frequency, risk
FROM anon.individual_risk('patients', ['sex', 'age', 'occupation'], population := 3_000_000)
ORDER BY risk DESC, patient_id ASC LIMIT 5;

-- how many would be found again, and which column contributes most
FROM anon.global_risk('patients', ['sex', 'age', 'occupation'], population := 3_000_000, target := 0.001);
