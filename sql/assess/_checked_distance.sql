-- anon._checked_distance: gives `result`, or refuses a distance between distributions that t-closeness does not know.
CREATE OR REPLACE MACRO anon._checked_distance(caller, distance, result) AS
    anon._checked_choice(caller, 'distance', distance, ['auto', 'ordered', 'equal'], result);
