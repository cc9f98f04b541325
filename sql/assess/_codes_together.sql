-- anon._codes_together: the codes at some places of a list as one: 0 where there is no place. Up to four places, which
-- are the most, need no list.
CREATE OR REPLACE MACRO anon._codes_together(codes, places) AS
    CASE len(places) WHEN 0 THEN 0::UBIGINT
                     WHEN 1 THEN codes[places[1]]
                     WHEN 2 THEN xor(codes[places[1]], codes[places[2]])
                     WHEN 3 THEN xor(xor(codes[places[1]], codes[places[2]]), codes[places[3]])
                     WHEN 4 THEN xor(xor(codes[places[1]], codes[places[2]]),
                                     xor(codes[places[3]], codes[places[4]]))
                     ELSE list_aggregate(list_select(codes, places), 'bit_xor') END;
