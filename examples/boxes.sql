-- Intervals that ten records share, and statistics over them that tell the truth. Run it on a database that population.sql made:
--     duckanon run examples/population.sql --db clinic.duckdb --create && duckanon run examples/boxes.sql --db clinic.duckdb

-- the theory: how wide must a box be around a point, and how near do the boxes that are made come to the optimum?
SELECT anon.box_halfwidths([1, 2], 50, 8) AS halfwidths;
FROM anon.optimal_uncertainty('patients', ['age', 'bmi', 'glucose'], 10);

-- boxes for the correlation of age and glucose
CREATE OR REPLACE TABLE boxed AS
FROM anon.boxes('patients', ['age', 'bmi', 'glucose'], 10, statistics := [{'statistic': 'correlation', 'columns': ['age', 'glucose']}]);
FROM boxed LIMIT 3;

-- how wide are the intervals? No statistic uses bmi: everybody has the same interval there
FROM anon.explain_boxes('boxed');

-- ten people of the same sex and occupation share each box; too few of a kind lose the occupation, which becomes NULL
CREATE OR REPLACE TABLE grouped AS FROM anon.boxes('patients', ['age', 'glucose'], 10, by := ['sex', 'occupation']);
SELECT sex, count(*) AS people, count(DISTINCT box) AS boxes FROM grouped GROUP BY sex ORDER BY sex;

-- what an analyst can say about it for certain, and what is true
SELECT statistic, columns, estimate, lower, upper FROM anon.interval_statistics('boxed', ['age', 'glucose']);
SELECT avg(age), avg(glucose), var_pop(age), covar_pop(age, glucose), corr(age, glucose) FROM patients;
FROM anon.interval_regression('boxed', 'glucose', ['age']);
FROM anon.interval_quantiles('boxed', ['glucose'], quantiles := [0.1, 0.5, 0.9]);
FROM anon.interval_counts('boxed', 'glucose >= 126 AND age BETWEEN 40 AND 59');

-- the same for women and men, whose sex is released as it is
CREATE OR REPLACE TABLE boxed_by_sex AS FROM anon.boxes('patients', ['age', 'glucose'], 50, keep := ['sex']);
SELECT sex, estimate, lower, upper FROM anon.interval_statistics('boxed_by_sex', ['glucose'], by := ['sex']) WHERE statistic = 'mean';

-- for a CSV file, and back; midpoints for tools that know no intervals
CREATE OR REPLACE TABLE flat AS FROM anon.flatten_boxes('boxed');
FROM anon.unflatten_boxes('flat') LIMIT 3;
SELECT avg(age), corr(age, glucose) FROM anon.midpoints('flat');

-- should wide boxes be left out, or count less? See the shift before you do
SELECT * EXCLUDE (dismissed) FROM anon.dismissal('boxed', 'variance', ['glucose']);
SELECT * EXCLUDE (weights) FROM anon.box_weights('boxed', 'variance', ['glucose']);

-- several rows a person: boxes of ten people, not of ten visits
CREATE OR REPLACE TABLE visits AS SELECT patient_id, age, glucose + visit AS glucose FROM patients, range(2) AS visits(visit) WHERE patient_id <= 'P005000';
SELECT min(visits) AS fewest_visits FROM (SELECT count(*) AS visits FROM anon.boxes('visits', ['age', 'glucose'], 10, person := 'patient_id') GROUP BY box);

-- boxes are data too: new people into known boxes
CREATE OR REPLACE TABLE boxes AS FROM anon.box_table('boxed', ['age', 'glucose']);
WITH newcomers AS (SELECT age, glucose FROM patients LIMIT 100)
SELECT count(box) AS in_a_box, count(*) AS people FROM anon.label_boxes('newcomers', 'boxes', ['age', 'glucose']);

-- means instead of intervals: groups of ten similar people of the same sex, and what is left of the correlation
CREATE OR REPLACE TABLE newcomers AS SELECT sex, age, glucose FROM patients LIMIT 2000;
CREATE OR REPLACE TABLE averaged AS
FROM anon.microaggregate('newcomers', ['age', 'glucose'], 10, method := 'fast', by := ['sex']);
SELECT corr(age, glucose) FROM averaged;

-- numbers and categories together, generalized class by class, with smokers and others in each class; and what that lost
CREATE OR REPLACE TABLE ward AS FROM patients WHERE patient_id <= 'P003000';
CREATE OR REPLACE TABLE recoded AS
FROM anon.recode('ward', ['age', 'sex', 'occupation'], 10, sensitive := 'smoker', l := 2, keep := ['smoker']);
SELECT class, "rows", labels, round(loss, 3) AS loss
FROM anon.recode_classes('recoded', ['age', 'sex', 'occupation']) ORDER BY loss DESC, class LIMIT 5;

-- or single cells that are left out: every record agrees with those of four other people
CREATE OR REPLACE TABLE gaps AS FROM anon.suppress_cells('newcomers', ['sex', 'age'], 5, importance := ['sex']);
SELECT count(*) AS people, count(sex) AS sexes, count(age) AS ages FROM gaps;

-- a table of counts instead of records: cells of few people are hidden, and others so that nobody can compute these
CREATE OR REPLACE TABLE counted AS FROM anon.protect_table('ward', ['sex', 'occupation', 'smoker'], k := 20);
SELECT count(*) AS cells, count(*) FILTER (NOT published) AS hidden FROM counted;
SELECT people, "value" FROM anon.cell_rules('ward', ['sex', 'occupation', 'smoker'], k := 20) WHERE is_primary;
SELECT count(*) FROM anon.audit_table('counted', ['sex', 'occupation', 'smoker'], k := 20) WHERE fault IS NOT NULL;

-- numbers with the noise of differential privacy, for everybody; an account would add up what all calls give away
SELECT count(*) AS sexes FROM anon.dp_table('ward', ['sex'], aggregates := ['count', 'mean(age)'], epsilon := 1, delta := 1e-6,
                                            bounds := MAP {'age': [0, 120]}, unaccounted := true);
