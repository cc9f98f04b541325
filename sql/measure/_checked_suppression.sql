-- anon._checked_suppression: the name of the original, after a look at the arguments of anon.suppressed.
CREATE OR REPLACE MACRO anon._checked_suppression(original, released, cols, person) AS
    anon._checked_table('anon.suppressed', 'original', original,
        anon._checked_table('anon.suppressed', 'released', released,
            anon._checked_person('anon.suppressed', person, cols,
                anon._checked_apart('anon.suppressed', cols,
                    ['candidates', '_duckanon_size', '_duckanon_rows', '_duckanon_person', '_duckanon_value'],
                    anon._checked('anon.suppressed', original, cols)))));
