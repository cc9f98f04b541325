-- What may leave: a file of its own, since the database still holds the originals.
{{ config(materialized='external', location=env_var('CLINIC_RELEASE', 'released_patients.parquet')) }}
SELECT * FROM anon.generalize('{{ ref("patients").schema }}.{{ ref("patients").identifier }}', ['sex', 'dob', 'zip'],
                              k := {{ var('k', 10) }}, person := 'patient_id',
                              keep := ['diagnosis'])
