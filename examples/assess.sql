-- Who can be picked out of this table? Run it on a database that population.sql made:
--     duckanon run examples/population.sql --db clinic.duckdb --create && duckanon run examples/assess.sql --db clinic.duckdb

-- at a glance: what each column is, and why
SELECT column_name, role, why FROM anon.assess('patients');

-- what must not leave the building in any case
SELECT column_name, category, evidence, action FROM anon.direct_identifiers('patients');

-- which columns, put together, name people? Minimal sets: what they contain is safe by itself
SELECT columns, unique_fraction, unique_fraction_bound
FROM anon.quasi_identifiers('patients', ['sex', 'dob', 'zip', 'age', 'occupation'], population := 20_000_000, minimal := true);

-- on a table that does not fit in memory: from samples, with the error to expect
SELECT columns, singletons, singletons_error
FROM anon.quasi_identifiers('patients', ['sex', 'dob', 'zip'], max_size := 2, approximate := true) LIMIT 3;

-- one set, in full
FROM anon.quasi_identifier('patients', ['sex', 'age', 'zip'], population := 20_000_000);

-- the theory behind it, by hand: sex, date of birth and ZIP code of Americans
SELECT anon.multiple_domain([2, 60 * 365, 100_000]) AS d, anon.max_unique_fraction(d, 3e8) AS at_most_unique,
       anon.distinct_for_alpha(0.5, 3e8) AS d_for_half_of_them;

-- how small are the crowds?
FROM anon.k_anonymity('patients', ['sex', 'age', 'zip']);
FROM anon.class_sizes('patients', ['sex', 'age', 'zip']) LIMIT 3;
FROM anon.small_classes('patients', ['sex', 'age'], 500);
SELECT patient_id, sex, age, zip, class_size FROM anon.risky_rows('patients', ['sex', 'age', 'zip'], 2) ORDER BY patient_id LIMIT 3;

-- rows that belong to one person: who knows two events of a patient, how many patients do they find?
WITH events AS (SELECT patient_id, unnest(['glucose ' || glucose // 40, 'work ' || occupation]) AS event FROM patients)
FROM anon.known_events(['events'], 'patient_id', ['event'], known := 2);

-- and what does someone learn who knows a person's crowd?
SELECT measure, l, c, worst_class, worst_class_size FROM anon.l_diversity('patients', ['sex', 'age'], 'occupation') LIMIT 4;
FROM anon.l_diversity_classes('patients', ['sex', 'age'], 'occupation') LIMIT 2;
FROM anon.t_closeness('patients', ['sex', 'age'], 'glucose');
FROM anon.t_closeness_classes('patients', ['sex', 'age'], 'glucose', t := 0.12);

-- how likely is each attacker to be right?
FROM anon.reidentification_risk('patients', ['sex', 'age', 'zip'], population := 20_000_000);
