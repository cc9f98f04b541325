-- anon._plain_name: a column's name as whole words in lower case: FirstName, patient-SSN and Téléphone 2 become
-- first_name, patient_ssn and telephone_2.
CREATE OR REPLACE MACRO anon._plain_name(column_name) AS
    trim(lower(regexp_replace(regexp_replace(regexp_replace(strip_accents(column_name),
         '(\p{Ll}|\pN)(\p{Lu})', '\1_\2', 'g'), '(\p{Lu})(\p{Lu}\p{Ll})', '\1_\2', 'g'), '[^\pL\pN]+', '_', 'g')), '_');
