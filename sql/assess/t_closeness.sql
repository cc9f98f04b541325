-- anon.t_closeness: how much more an attacker learns about a sensitive column from a person's class than from the whole
-- table: the largest distance t between the two distributions, its average over the rows, and the class that is worst.
--     distance  'ordered': earth mover's distance, neighbouring values 1/(m-1) apart; 'equal': half the sum of |p - q|;
--               'auto': ordered for numbers, dates and booleans, equal for text
--     nulls     for cols, 'value': NULL is a value; 'drop': rows with a NULL are left out. In `sensitive` it is a
--               value, after all others
--     person    name of the column that says whose row it is: counts are then of different people, and shares of the
--               sum of these counts. A row whose person is NULL counts as nobody; a class without anybody has t = 1.
--               NULL: every row is a person
-- The classes that are too far: anon.t_closeness_classes.
-- test: tests/assess/t_closeness.test
CREATE OR REPLACE MACRO anon.t_closeness(
    tbl, cols, sensitive, distance := 'auto', nulls := 'value', person := NULL
) AS TABLE
SELECT any_value(distance_kind) AS distance,
       max(farness) AS t,
       sum(farness * class_size) / nullif(sum(class_size), 0) AS average_t, count(*) AS classes,
       arg_max(class, (round(farness, 12), class_size, class)) AS worst_class,
       arg_max(class_size, (round(farness, 12), class_size, class)) AS worst_class_size
FROM anon._closeness('anon.t_closeness', tbl, cols, sensitive, distance, nulls, person := person)
HAVING anon._checked_rows('anon.t_closeness', count(*), true);
COMMENT ON MACRO TABLE anon.t_closeness IS
    'Largest distance between the sensitive values of a class and those of the table, and the class where it is.';
