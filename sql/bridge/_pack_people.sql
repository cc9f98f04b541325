-- anon._pack_people: like anon._pack, with the column that tells people apart, if `person` names one.
-- needs: python
CREATE OR REPLACE MACRO anon._pack_people(caller, tbl, cols, person, seed) AS
    anon._tickets(anon._checked_person(caller, person, cols, anon._checked(caller, tbl, cols)),
                  anon._with_columns(cols, list_filter([person], lambda named: named IS NOT NULL)), seed, true);
