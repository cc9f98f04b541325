-- anon._checked_disclosure: the name of the original, after a look at the arguments of anon.interval_disclosure.
CREATE OR REPLACE MACRO anon._checked_disclosure(original, released, cols, width, key, person) AS
    anon._checked_table('anon.interval_disclosure', 'original', original,
        anon._checked_table('anon.interval_disclosure', 'released', released,
            anon._checked_other('anon.interval_disclosure', 'key', key, cols,
                anon._checked_person('anon.interval_disclosure', person, cols,
                    CASE WHEN TRY_CAST(width AS DOUBLE) >= 0 AND isfinite(TRY_CAST(width AS DOUBLE))
                              THEN anon._checked_apart('anon.interval_disclosure', cols,
                                       ['_duckanon_none', '_duckanon_place'],
                                       anon._checked_groups('anon.interval_disclosure', original, cols, 'value'))
                         ELSE error(anon._must_be('anon.interval_disclosure', 'width', 'a number of at least 0',
                                                  width)) END))));
