-- anon._checked_boxes: passes `result` on where boxes can be made as asked, refuses it otherwise.
CREATE OR REPLACE MACRO anon._checked_boxes(
    caller, k, l, epsilon, box, bounds_are_public, top_code, effort, seconds, result
) AS
    anon._checked_whole(caller, 'k', k, 2, anon._checked_whole(caller, 'l', l, 1,
        anon._checked_choice(caller, 'box', box, ['parts', 'cell', 'bounds', 'rounded'],
            anon._checked_choice(caller, 'effort', effort, ['default', 'thorough'],
                CASE WHEN box = 'bounds' AND bounds_are_public IS DISTINCT FROM true
                          THEN error(caller || ': box := ''bounds'' publishes real people''s values; take ''parts'', '
                                            || 'or say bounds_are_public := true where everybody may know them.')
                     WHEN top_code IS NULL OR typeof(top_code) <> 'BOOLEAN'
                          THEN error(anon._must_be(caller, 'top_code', 'true or false', top_code))
                     WHEN top_code AND box <> 'parts'
                          THEN error(caller || ': top_code must be false unless box is ''parts''; got true.')
                     WHEN epsilon IS NOT NULL AND l = 1
                          THEN error(caller || ': epsilon must come with l above 1, whose values it tells apart; '
                                            || 'got l := 1.')
                     WHEN seconds IS NOT NULL AND effort <> 'thorough'
                          THEN error(caller || ': seconds must come with effort := ''thorough'', which they limit; '
                                            || 'got ' || CAST(effort AS VARCHAR) || '.')
                     ELSE result END))));
