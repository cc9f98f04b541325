-- anon.l_diversity: how many values of a sensitive column are possible for an attacker who knows a person's class, in
-- the worst class, by each of the three definitions of Machanavajjhala et al. 2007. A row per measure:
--     distinct                    l: the fewest different values in a class
--     entropy                     l: the smallest exp(entropy) of a class's values
--     recursive                   for l = 2, 3, ... the c that must be exceeded: the largest r1 / (rl + ... + rm) of a
--                                 class, where r1 >= r2 >= ... are the counts of its values; infinity where a class has
--                                 fewer than l values
--     worst_class, worst_class_size  where that happens; of several, where the counts have the largest sum
--     sensitive                   sensitive column; a NULL in it is a value [a name]
--     nulls                       'value': a NULL in cols is a value; 'drop': rows with a NULL in cols are left out
--                                 [one of 'value', 'drop']
--     person                      column that identifies the person of a row: counts are then of different people, and
--                                 shares of the sum of these counts, since a person may have several values in a class.
--                                 A row whose person is NULL counts as nobody. NULL: every row is a person [a name, or
--                                 NULL]
-- The classes that fail: anon.l_diversity_classes.
-- promises: EqualsDefinition(), CountsPeople('measure', 'l', 'c'), InvariantUnder(*TABLE, 'types')
-- test: tests/assess/l_diversity.test
CREATE OR REPLACE MACRO anon.l_diversity(tbl, cols, sensitive, nulls := 'value', person := NULL) AS TABLE
WITH _duckanon_checked AS NOT MATERIALIZED (
    FROM query_table(anon._checked_sensitive('anon.l_diversity', tbl, cols, sensitive, nulls, person))
), _duckanon_by_rows AS (                                       -- by the columns themselves, so that classes have names
    SELECT COLUMNS(cols), COLUMNS([sensitive]) AS _duckanon_value, count(*) AS _duckanon_size
    FROM query_table(CASE WHEN anon._is_plain_sensitive(tbl, cols, sensitive, nulls) THEN CAST(tbl AS VARCHAR)
                          ELSE '_duckanon_checked' END)
    WHERE (nulls = 'value' OR COLUMNS(cols) IS NOT NULL)
          AND anon._all_uncollated('anon.l_diversity', list_concat(cols, [sensitive]),
                                   concat_ws('', UNPACK(CAST(COLUMNS(list_concat(cols, [sensitive])) AS VARCHAR))))
    GROUP BY ALL
), _duckanon_members AS MATERIALIZED (
    SELECT COLUMNS(cols), COLUMNS([sensitive]) AS _duckanon_value,
           anon._value_code(COLUMNS([person])) AS _duckanon_person
    FROM _duckanon_checked
    WHERE (nulls = 'value' OR COLUMNS(cols) IS NOT NULL)
          AND anon._all_uncollated('anon.l_diversity', list_concat(cols, [sensitive]),
                                   concat_ws('', UNPACK(CAST(COLUMNS(list_concat(cols, [sensitive])) AS VARCHAR))))
    GROUP BY ALL
), _duckanon_by_people AS (
    SELECT COLUMNS(cols), _duckanon_value, count(_duckanon_person) AS _duckanon_size FROM _duckanon_members GROUP BY ALL
), _duckanon_cells AS MATERIALIZED (
    FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_by_rows' ELSE '_duckanon_by_people' END)
), _duckanon_counted AS (
    SELECT COLUMNS(cols), sum(_duckanon_size)::BIGINT AS _duckanon_total, max(_duckanon_size) AS _duckanon_largest,
           count(*) FILTER (_duckanon_size > 0) AS _duckanon_distinct,
           sum(_duckanon_size * ln(greatest(_duckanon_size, 1))) AS _duckanon_logs
    FROM _duckanon_cells GROUP BY ALL
), _duckanon_classes AS (
    SELECT _duckanon_total AS total, _duckanon_distinct AS distinct_l,
           CASE WHEN _duckanon_total = 0 THEN 0
                ELSE greatest(exp(ln(_duckanon_total) - _duckanon_logs / _duckanon_total), 1) END AS entropy_l,
           anon._excess(_duckanon_largest, _duckanon_total) AS excess, struct_pack(*COLUMNS(cols)) AS named
    FROM _duckanon_counted
), _duckanon_lowest AS MATERIALIZED (                           -- of those equally bad the one with the most is shown
    SELECT min({'l': distinct_l, 'total': -total, 'named': named}) AS fewest, min(entropy_l) AS lowest_entropy,
           min({'l': round(entropy_l, 12), 'total': -total, 'named': named}) AS purest,
           max({'c': excess, 'total': total, 'named': named}) AS heaviest
    FROM _duckanon_classes
    HAVING anon._checked_rows('anon.l_diversity', count(*), true)
), _duckanon_ranked AS (                                        -- l = 3 and more, only where every class has 3 values
    SELECT COLUMNS(cols), sum(_duckanon_size)::BIGINT AS _duckanon_total, max(_duckanon_size, 9) AS _duckanon_sizes,
           _duckanon_l
    FROM _duckanon_cells, (SELECT fewest.l AS _duckanon_l FROM _duckanon_lowest WHERE fewest.l > 2)
    GROUP BY ALL
), _duckanon_further AS (
    SELECT level, max({'c': sizes[1] / (total - list_sum(sizes[1:level - 1])), 'total': total,
                       'named': named}) AS heaviest
    FROM (SELECT _duckanon_total AS total, _duckanon_sizes AS sizes, struct_pack(*COLUMNS(cols)) AS named,
                 unnest(range(3, 1 + least(_duckanon_l, 10))) AS level
          FROM _duckanon_ranked)
    GROUP BY level
), _duckanon_shown AS (
    SELECT unnest(['distinct', 'entropy', 'recursive']) AS measure, unnest([fewest.l, lowest_entropy, 2]) AS l,
           unnest([NULL, NULL, heaviest.c]) AS c, unnest([fewest.named, purest.named, heaviest.named]) AS worst_class,
           unnest([-fewest.total, -purest.total, heaviest.total]) AS worst_class_size
    FROM _duckanon_lowest
    UNION ALL
    SELECT 'recursive', level, heaviest.c, heaviest.named, heaviest.total FROM _duckanon_further
), _duckanon_worst AS (                                         -- people are counted only where they are shown
    SELECT struct_pack(*COLUMNS(cols)) AS worst_class, count(DISTINCT _duckanon_person) AS people
    FROM _duckanon_members
    WHERE struct_pack(*COLUMNS(cols)) IN (SELECT worst_class FROM _duckanon_shown)
    GROUP BY ALL
), _duckanon_shown_people AS (                                  -- a person with two values is in the total twice
    SELECT measure, l, c, worst_class, people AS worst_class_size
    FROM _duckanon_shown JOIN _duckanon_worst USING (worst_class)
)
FROM query_table(CASE WHEN person IS NULL THEN '_duckanon_shown' ELSE '_duckanon_shown_people' END)
ORDER BY measure ASC NULLS LAST, l ASC NULLS LAST;
COMMENT ON MACRO TABLE anon.l_diversity IS
    'Distinct, entropy and recursive l-diversity of a sensitive column, each with its worst class.';
