-- The visits of a clinic's patients: 200,000 people who do not exist, or SET VARIABLE people = ... Every value follows
-- from a number by MD5, so that the table is the same on every machine and with every version of DuckDB. Few places and
-- few diagnoses are frequent, households share a name, a place and a phone, some people come often, and some never said
-- what they were asked.
CREATE OR REPLACE TEMP MACRO chance(number, what) AS md5_number_lower(what || number) / 18446744073709551616.0;
CREATE OR REPLACE TEMP MACRO bell(number, what) AS     -- a standard normal value, by Box and Muller
    sqrt(-2 * ln(chance(number, what || ' r') + 1e-12)) * cos(2 * pi() * chance(number, what || ' phi'));
CREATE OR REPLACE TEMP MACRO chosen(choices, number, what, skew) AS
    list_extract(choices, 1 + floor(len(choices) * pow(chance(number, what), skew))::INTEGER);

CREATE OR REPLACE TABLE patients AS
WITH people AS (
    SELECT unnest(range(1, 1 + coalesce(getvariable('people'), 200_000)::BIGINT)) AS person
), housed AS (             -- 2.2 people a household
    SELECT person, sum(CASE WHEN chance(person, 'moves out') < 0.45 THEN 1 ELSE 0 END) OVER (ORDER BY person) AS household
    FROM people
), born AS (
    SELECT person, household, CASE WHEN chance(person, 'sex') < 0.52 THEN 'F' ELSE 'M' END AS sex,
           DATE '1930-01-01' + floor(95 * 365.25 * pow(chance(person, 'dob'), 0.8))::INTEGER AS dob
    FROM housed
), grown AS (
    SELECT *, date_diff('year', dob, DATE '2026-01-01') AS age,
           round(25 + 4.2 * bell(person, 'bmi') + CASE WHEN sex = 'M' THEN 0.8 ELSE 0 END, 1)::DECIMAL(4,1) AS bmi
    FROM born
)
SELECT 'P' || lpad(person::VARCHAR, 6, '0') AS patient_id,
       chosen(['Anna', 'Ben', 'Clara', 'David', 'Emma', 'Felix', 'Greta', 'Hugo', 'Ida', 'Jonas'], person, 'first name', 1)
       || ' ' || chosen(['Smith', 'Jones', 'Nguyen', 'Garcia', 'Weber', 'Rossi', 'Okafor', 'Haddad', 'Lund', 'Sato'],
                        household, 'last name', 2) AS name,
       '+1 555 ' || lpad(floor(1e7 * chance(household, 'phone'))::INTEGER::VARCHAR, 7, '0') AS phone,
       household::INTEGER AS household_id, sex, dob,
       (10_000 + 7 * floor(400 * pow(chance(household, 'zip'), 3))::INTEGER)::VARCHAR AS zip,
       CASE WHEN chance(person, 'said work') < 0.04 THEN NULL
            WHEN age < 18 THEN 'pupil' WHEN age >= 66 THEN 'retired'
            ELSE chosen(['clerk', 'nurse', 'teacher', 'driver', 'engineer', 'cook', 'farmer', 'musician', 'judge'],
                        person, 'work', 2) END AS occupation,
       CASE WHEN chance(person, 'weighed') < 0.08 THEN NULL ELSE bmi END AS bmi,
       CASE WHEN chance(person, 'tested') < 0.12 THEN NULL
            ELSE greatest(55, 90 + 0.3 * (age - 50) + 1.6 * (bmi - 25) + 11 * bell(person, 'glucose'))::SMALLINT
       END AS glucose
FROM grown ORDER BY person;

-- one visit of most people, up to twelve of a few
CREATE OR REPLACE TABLE visits AS
SELECT patients.* EXCLUDE (bmi, glucose),
       DATE '2025-01-01' + floor(365 * chance(patient_id || visit, 'visited'))::INTEGER AS visited,
       chosen(['emergency', 'medicine', 'surgery', 'paediatrics', 'psychiatry'], patient_id || visit, 'department', 1.7)
           AS department,
       floor(-3 * ln(chance(patient_id || visit, 'days') + 1e-12))::INTEGER AS days_in_hospital,
       chosen(['hypertension', 'back pain', 'infection', 'diabetes', 'asthma', 'depression', 'fracture', 'cancer', 'HIV'],
              patient_id || visit, 'diagnosis', 2.2) AS diagnosis
FROM patients,
     (SELECT unnest(range(12)) AS visit) AS numbers
WHERE visit <= ln(chance(patient_id, 'visits') + 1e-12) / ln(0.45)
ORDER BY patient_id, visit;

DROP MACRO chosen;
DROP MACRO bell;
DROP MACRO chance;
