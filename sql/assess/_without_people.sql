-- anon._without_people: the sentence that refuses a table without rows, or one whose rows are nobody's, else another.
CREATE OR REPLACE MACRO anon._without_people(caller, row_count, people, person, otherwise) AS
    concat(caller, ': ',
           CASE WHEN row_count > 0 AND people > 0 THEN otherwise
                WHEN row_count > 0 THEN concat('person must name a column that says whose rows they are; got ',
                                               CAST(person AS VARCHAR), ', which is NULL in every row.')
                ELSE 'the table has no rows to look at.' END);
