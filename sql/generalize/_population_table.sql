-- anon._population_table: the name of the table that a population is given as; NULL where it is a number or none.
CREATE OR REPLACE MACRO anon._population_table(population) AS
    CASE WHEN typeof(population) = 'VARCHAR' THEN CAST(population AS VARCHAR) END;
