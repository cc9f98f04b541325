-- anon._unique_cells: the distinct rows of a table as the search for minimal uniques takes them: the hash of each
-- column's value, NULL for NULL, and the columns of anon._classes, with the hash of all columns as the cell's name.
--     max_size, weighting, sampling_fraction, nulls  as in anon.special_uniques, to be looked at
CREATE OR REPLACE MACRO anon._unique_cells(caller, tbl, cols, max_size, weighting, sampling_fraction, nulls, person) AS
TABLE
SELECT CASE WHEN COLUMNS(cols) IS NOT NULL THEN hash(COLUMNS(cols)) END, hash(*COLUMNS(cols)) AS _duckanon_class,
       _duckanon_size, _duckanon_rows, _duckanon_anyone
FROM anon._classes(caller,
                   anon._checked_choice(caller, 'nulls', nulls, ['value', 'drop'],
                       anon._checked_choice(caller, 'weighting', weighting, ['factorial', 'share'],
                           anon._checked_open_fraction(caller, 'sampling_fraction', sampling_fraction,
                               CASE WHEN max_size IS NULL THEN tbl
                                    ELSE anon._checked_whole(caller, 'max_size', max_size, 1, tbl) END))),
                   cols, 'value', person := person);
