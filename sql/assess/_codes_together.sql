-- anon._codes_together: the codes at some places of a list as one: 0 where there is no place. One and two places, which
-- are the most, need no list.
CREATE OR REPLACE MACRO anon._codes_together(codes, places) AS
    CASE len(places) WHEN 0 THEN 0::UBIGINT
                     WHEN 1 THEN codes[places[1]]
                     WHEN 2 THEN xor(codes[places[1]], codes[places[2]])
                     ELSE list_aggregate(list_select(codes, places), 'bit_xor') END;
