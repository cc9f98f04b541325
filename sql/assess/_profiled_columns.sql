-- anon._profiled_columns: rows, NULLs, different values and the largest class of some of a table's columns: those whose
-- names have a hash with a remainder. A column of many values takes as much memory as a GROUP BY by it; so not all are
-- counted at once. The list of places is a constant: to make one for each row takes a quarter of the time.
--     part, parts  the remainder, and what is divided by
--     place        of a column among those of its part
--     before       name of a step that is done before this one begins
CREATE OR REPLACE MACRO anon._profiled_columns(tbl, part, parts, before) AS TABLE
WITH _duckanon_part AS NOT MATERIALIZED (           -- no column would be an error; a name with a space is nobody's
    SELECT COLUMNS(lambda named: named = ' none' OR hash(named) % parts = part)
    FROM (SELECT *, NULL::INTEGER AS " none" FROM query_table(tbl))
), _duckanon_codes AS NOT MATERIALIZED (            -- a NULL stays NULL, everything else becomes its hash
    SELECT anon._value_code(COLUMNS(*)) FROM _duckanon_part
    WHERE (SELECT coalesce(max(row_count), 0) >= 0 FROM query_table(before))
), _duckanon_cells AS NOT MATERIALIZED (            -- one row a cell: the column's place and the value's code
    SELECT unnest(places) AS place, unnest(row_codes) AS code
    FROM (SELECT range(1, 1 + len([UNPACK(alias(COLUMNS(*)))]))::USMALLINT[] AS places,
                 [UNPACK(COLUMNS(*))] AS row_codes FROM _duckanon_codes)
), _duckanon_classes AS NOT MATERIALIZED (
    SELECT place, code, count(*) AS size FROM _duckanon_cells GROUP BY ALL
)
SELECT part AS part, place, sum(size)::BIGINT AS row_count, sum(size) FILTER (code IS NULL) AS nulls,
       count(code) AS distinct_values, max(size) FILTER (code IS NOT NULL) AS largest_class
FROM _duckanon_classes GROUP BY place;
