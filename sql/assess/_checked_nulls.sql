-- anon._checked_nulls: `nulls` itself, where it says what a check that can let NULL match anything knows, and `alpha`
-- is a fraction; an error otherwise. Matches are counted by rows: a person may have rows that match in several ways.
CREATE OR REPLACE MACRO anon._checked_nulls(caller, nulls, alpha, person) AS
    anon._checked_choice(caller, 'nulls', nulls, ['value', 'drop', 'any'],
        anon._checked_fraction(caller, 'alpha', alpha,
            CASE WHEN nulls = 'any' AND person IS NOT NULL
                      THEN error(caller || ': person must be NULL where nulls is any, since a person whose rows match '
                                 || 'in several ways would count several times; got ' || CAST(person AS VARCHAR)
                                 || '.')
                 ELSE CAST(nulls AS VARCHAR) END));
