-- anon._checked_boxes: passes `result` on where boxes can be made as asked, refuses it otherwise.
CREATE OR REPLACE MACRO anon._checked_boxes(caller, k, l, box, effort, result) AS
    anon._checked_whole(caller, 'k', k, 2, anon._checked_whole(caller, 'l', l, 1,
        anon._checked_choice(caller, 'box', box, ['cell', 'bounds', 'rounded'],
            anon._checked_choice(caller, 'effort', effort, ['default', 'thorough'], result))));
