-- People who do not exist, in place of a source.
{{ config(materialized='table') }}
SELECT 'P' || i AS patient_id,
       CASE WHEN md5_number_lower('sex' || i) % 2 = 0 THEN 'F' ELSE 'M' END AS sex,
       DATE '1940-01-01' + (md5_number_lower('dob' || i) % 25_000)::INTEGER AS dob,
       (10_000 + md5_number_lower('zip' || i) % 50)::VARCHAR AS zip,
       list_extract(['flu', 'asthma', 'cold', 'diabetes'], 1 + (md5_number_lower('ill' || i) % 4)::INTEGER) AS diagnosis
FROM range(3000) AS people(i)
