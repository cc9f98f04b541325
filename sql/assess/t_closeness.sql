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
WITH _duckanon_far AS MATERIALIZED (
    FROM anon._closeness('anon.t_closeness', tbl, cols, sensitive, distance, nulls, person)
), _duckanon_summary AS MATERIALIZED (
    SELECT any_value(distance_kind) AS distance_kind,
           max(farness) AS t,
           fsum(farness * class_size) / nullif(sum(class_size), 0) AS average_t, count(*) AS classes
    FROM _duckanon_far
    HAVING anon._checked_rows('anon.t_closeness', count(*), true)
), _duckanon_tied AS MATERIALIZED (
    SELECT class, class_size FROM _duckanon_far WHERE round(farness, 12) = (SELECT round(t, 12) FROM _duckanon_summary)
), _duckanon_shown AS MATERIALIZED (
    FROM _duckanon_tied WHERE class_size = (SELECT max(class_size) FROM _duckanon_tied)
)
SELECT any_value(distance_kind) AS distance, any_value(t) AS t, any_value(average_t) AS average_t,
       any_value(classes) AS classes, arg_max(named, row(class_size, named)) AS worst_class,
       any_value(class_size) AS worst_class_size
FROM _duckanon_summary,
     _duckanon_shown LEFT JOIN anon._class_names(tbl, cols, nulls, '_duckanon_shown') USING (class);
COMMENT ON MACRO TABLE anon.t_closeness IS
    'Largest distance between the sensitive values of a class and those of the table, and the class where it is.';
