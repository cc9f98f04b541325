-- anon._range_label: '[20, 30)', the label of the place-th range, with as many decimals as step and origin have.
CREATE OR REPLACE MACRO anon._range_label(place, step, origin) AS
    format('[{:.{}f}, {:.{}f})',
           anon._range_bound(place, step, origin), greatest(anon._decimals(step), anon._decimals(origin)),
           anon._range_bound(place + 1, step, origin), greatest(anon._decimals(step), anon._decimals(origin)));
