-- anon._checked_groups_of: passes `result` on where groups can be made as asked, refuses it otherwise.
CREATE OR REPLACE MACRO anon._checked_groups_of(caller, k, method, label, result) AS
    anon._checked_whole(caller, 'k', k, 2,
        anon._checked_choice(caller, 'method', method, ['mdav', 'fast'],
            anon._checked_choice(caller, 'label', label, ['mean', 'median', 'interval'], result)));
