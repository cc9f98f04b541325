-- anon._is_default: whether these arguments of a check are its defaults, so that there is nothing to look at.
CREATE OR REPLACE MACRO anon._is_default(nulls, person, alpha) AS concat_ws('|', person, nulls, alpha) = 'value|1';
