-- A clinic's patients: 100,000 people who do not exist. Every value follows from the person's number by MD5, so that the
-- table is the same on every machine and with every version of DuckDB.
CREATE OR REPLACE MACRO chance(person, what) AS md5_number_lower(what || person) / 18446744073709551616.0;
CREATE OR REPLACE MACRO bell(person, what) AS          -- a standard normal value, by Box and Muller
    sqrt(-2 * ln(chance(person, what || ' r') + 1e-12)) * cos(2 * pi() * chance(person, what || ' phi'));

CREATE OR REPLACE TABLE patients AS
WITH born AS (
    SELECT person, IF(chance(person, 'sex') < 0.52, 'F', 'M') AS sex,
           DATE '1936-01-01' + (70 * 365.25 * sqrt(chance(person, 'dob')))::INTEGER AS dob,
           10_000 + (400 * pow(chance(person, 'zip'), 2))::INTEGER * 7 AS place
    FROM range(1, 100_001) AS people(person)
), grown AS (
    SELECT *, date_diff('year', dob, DATE '2026-01-01') AS age,
           round(26 + 4 * bell(person, 'bmi') + IF(sex = 'M', 0.8, 0), 1)::DECIMAL(4,1) AS bmi
    FROM born
)
SELECT 'P' || lpad(person::VARCHAR, 6, '0') AS patient_id, sex, dob, place::VARCHAR AS zip, age::UTINYINT AS age, bmi,
       greatest(55, 92 + 0.35 * (age - 50) + 1.6 * (bmi - 26) + 11 * bell(person, 'glucose'))::SMALLINT AS glucose,
       CASE WHEN chance(person, 'asked') < 0.03 THEN NULL
            ELSE chance(person, 'smoker') < 0.28 - 0.003 * (age - 50) END AS smoker,
       (['nurse', 'teacher', 'clerk', 'driver', 'farmer', 'engineer', 'cook', 'retired', 'student', 'judge'])
           [1 + (10 * pow(chance(person, 'work'), 1.4))::INTEGER % 10] AS occupation
FROM grown ORDER BY person;

DROP MACRO bell;
DROP MACRO chance;
