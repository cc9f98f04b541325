-- anon._cells: the cells of an aggregate table with all margins, by a CUBE that is put together for query(): what each
-- person contributes to a cell is added up first.
--     most                how many of the largest contributions of a cell are returned
--     _duckanon_people    people who contribute
--     _duckanon_sum       the sum of their contributions; NULL: there is none
--     _duckanon_absolute  the sum of the sizes of their contributions
--     _duckanon_largest   the sizes of the largest contributions
CREATE OR REPLACE MACRO anon._cells(caller, tbl, by, measure, person, most) AS TABLE
FROM query(anon._cells_query(
    anon._joined(list_transform(anon._names_or_none("by"), lambda named: anon._identifier(named)), ', '),
    anon._joined(list_transform(anon._names_or_none("by"), lambda named:
        'CASE WHEN GROUPING(' || anon._identifier(named) || ') = 1 THEN ''Total'' ELSE ' || anon._identifier(named)
        || ' END AS ' || anon._identifier(named)), ', '),
    'anon._table_source(' || anon._quoted(caller) || ', ' || anon._quoted(tbl) || ', ['
        || anon._joined(list_transform(anon._names_or_none("by"), lambda named: anon._quoted(named)), ', ') || '], '
        || coalesce(anon._quoted(measure), 'NULL') || ', ' || coalesce(anon._quoted(person), 'NULL') || ')',
    'system.main.fsum(_duckanon_value) AS _duckanon_sum, '
        || 'system.main.fsum(system.main.abs(_duckanon_value)) AS _duckanon_absolute, '
        || 'system.main.max(system.main.abs(_duckanon_value), ' || most || ') AS _duckanon_largest',
    person IS NOT NULL));
