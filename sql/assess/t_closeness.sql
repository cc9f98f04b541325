-- anon.t_closeness: how much more an attacker learns about a sensitive column from a person's class than from the whole
-- table: the largest distance t between the two distributions, its average over the rows, and the worst class.
--     sensitive  sensitive column; a NULL in it is a value, after all others [a name]
--     distance   'ordered': earth mover's distance, neighbouring values 1/(m-1) apart; 'equal': half the sum of |p -
--                q|; 'auto': ordered for numbers, dates and booleans, equal for text [one of 'auto', 'ordered',
--                'equal']
--     nulls      as in anon.l_diversity
--     person     column that identifies the person of a row: a count is then of the different people who have a value,
--                in a class or anywhere in the table, and shares are of the sum of these counts, in the average too. A
--                row whose person is NULL counts as nobody; a class without anybody has t = 1. NULL: every row is a
--                person [a name, or NULL]
-- The classes that are too far: anon.t_closeness_classes.
-- promises: OneRow(), EqualsDefinition(), Between(0, 1, 't', 'average_t'), CountsPeople('t'),
--           InvariantUnder(*TABLE, 'types')
-- test: tests/assess/t_closeness.test
CREATE OR REPLACE MACRO anon.t_closeness(
    tbl, cols, sensitive, distance := 'auto', nulls := 'value', person := NULL
) AS TABLE
WITH _duckanon_members AS MATERIALIZED (
    FROM anon._sensitive_members('anon.t_closeness',
                                 anon._checked_choice('anon.t_closeness', 'distance', distance,
                                                      ['auto', 'ordered', 'equal'], tbl),
                                 cols, sensitive, nulls, person)
), _duckanon_far AS MATERIALIZED (
    FROM anon._closeness('_duckanon_members', distance, person)
), _duckanon_summary AS MATERIALIZED (
    SELECT any_value(distance_kind) AS distance_kind,
           max(farness) AS t,
           fsum(farness * class_total) / nullif(sum(class_total), 0) AS average_t, count(*) AS classes
    FROM _duckanon_far
    HAVING anon._checked_rows('anon.t_closeness', count(*), true)
), _duckanon_shown AS MATERIALIZED (                            -- of those equally far the one with the most is shown
    SELECT class, class_total FROM _duckanon_far
    WHERE round(farness, 12) = (SELECT round(t, 12) FROM _duckanon_summary)
    QUALIFY class_total = max(class_total) OVER ()
), _duckanon_shown_members AS (                                 -- people are counted only where they are shown
    FROM _duckanon_members WHERE class IN (SELECT class FROM _duckanon_shown)
), _duckanon_sized AS (
    SELECT named, class_total - coalesce(repeats, 0) AS class_size
    FROM _duckanon_shown LEFT JOIN anon._class_repeats('_duckanon_shown_members') USING (class)
         LEFT JOIN anon._class_names(tbl, cols, nulls, '_duckanon_shown') USING (class)
)
SELECT any_value(distance_kind) AS distance, any_value(t) AS t, any_value(average_t) AS average_t,
       any_value(classes) AS classes, max(named) AS worst_class, arg_max(class_size, named) AS worst_class_size
FROM _duckanon_summary, _duckanon_sized;
COMMENT ON MACRO TABLE anon.t_closeness IS
    'Largest distance between the sensitive values of a class and those of the table, and its class.';
