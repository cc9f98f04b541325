-- anon._checked_recode: passes `result` on where a table can be recoded as asked, refuses it otherwise.
CREATE OR REPLACE MACRO anon._checked_recode(caller, k, max_suppressed_fraction, effort, output, result) AS
    anon._checked_whole(caller, 'k', k, 2,
        anon._checked_fraction(caller, 'max_suppressed_fraction', max_suppressed_fraction,
            anon._checked_choice(caller, 'effort', effort, ['quick', 'default', 'thorough'],
                anon._checked_choice(caller, 'output', output, ['text', 'value'], result))));
