-- Identifiers that must stay linkable. A key is a secret: it belongs into the environment of the job, and comes from there
-- as a parameter of the statement or as getenv('DUCKANON_KEY'); this one is only made up for one run.
SET VARIABLE key = sha256(CAST(uuid() AS VARCHAR));

-- two tables of the same people, joined by what nobody else can compute; how likely is it that two people become one?
CREATE OR REPLACE TABLE visits AS
SELECT patient_id, dob + (9_000 + 137 * visit)::INTEGER AS visited FROM patients, range(3) AS t(visit) WHERE glucose > 120;
SELECT anon.pseudonym_collision(count(DISTINCT patient_id), length := 16) AS same_by_accident FROM visits;
CREATE OR REPLACE TABLE linked_patients AS
SELECT anon.pseudonym(patient_id, getvariable('key'), length := 16) AS person, sex, smoker FROM patients;
CREATE OR REPLACE TABLE linked_visits AS
SELECT anon.pseudonym(patient_id, getvariable('key'), length := 16) AS person,
       anon.shift_date(visited, patient_id, getvariable('key')) AS visited FROM visits;

-- what lies between two visits is as it was
SELECT sex, count(*) AS visits, max(gap) AS days_between
FROM (SELECT person, visited - lag(visited) OVER (PARTITION BY person ORDER BY visited) AS gap FROM linked_visits)
JOIN linked_patients USING (person) GROUP BY sex ORDER BY sex;

-- for somebody on the phone
SELECT anon.mask(patient_id, keep_last := 2) AS number, anon.mask('anna.smith@example.org', keep_first := 2) AS address
FROM patients LIMIT 2;
