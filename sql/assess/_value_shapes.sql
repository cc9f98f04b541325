-- anon._value_shapes: the shapes of direct identifiers that one value has, as a list that is empty for most values. The
-- patterns stand here as constants because DuckDB compiles a pattern that comes from a table anew for every value.
--     value_text: one value as text, without spaces around it
-- Shapes that end in _digits are too common to say anything by themselves; they only confirm a column's name.
-- test: tests/assess/direct_identifiers.test
CREATE OR REPLACE MACRO anon._value_shapes(value_text) AS list_filter([
    CASE WHEN contains(value_text, '@')
          AND regexp_full_match(value_text, '(?i)(mailto:)?[\pL\pN.!#$%&''*+/=?^_{'
                                                            '|}~-]+@([\pL\pN-]+\.)+\pL{2,}') THEN 'email' END,
    CASE WHEN regexp_full_match(value_text, '(\+?1[-. ]?)?(\([2-9][0-9]{2}\) ?'
                                            '|[2-9][0-9]{2}[-. /])[2-9][0-9]{2}[-. ][0-9]{4}( ?(?i)(x'
                                            '|ext\.?) ?[0-9]{1,6})?')
           OR (starts_with(value_text, '+') AND regexp_full_match(value_text, '\+[1-9]([-. ()/]{0,2}[0-9]){7,14}'))
         THEN 'phone' END,
    CASE WHEN regexp_full_match(value_text, '1?[2-9][0-9]{2}[2-9][0-9]{6}'
                                            '|[2-9][0-9]{2}[-. ]?[0-9]{4}') THEN 'phone_digits' END,
    CASE WHEN regexp_full_match(value_text, '([0-9]{3})[- ]([0-9]{2})[- ]([0-9]{4})')
          AND NOT regexp_matches(value_text, '^(000|666|9)|^....00|0000$') THEN 'ssn' END,
    CASE WHEN regexp_full_match(value_text, '[0-9]{7,9}')
          AND NOT regexp_matches(lpad(value_text, 9, '0'), '^(000|666|9)|^...00|0000$') THEN 'ssn_digits' END,
    CASE WHEN regexp_full_match(value_text, '((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]'
                                            '|1[0-9]{2}|[1-9]?[0-9])(/[0-9]{1,2}|:[0-9]{1,5})?')
           OR (contains(value_text, ':') AND anon._ipv6_valid(value_text)) THEN 'ip' END,
    CASE WHEN regexp_full_match(value_text, '(?i)(https?|s?ftp)://[^\s]+|www\.[^\s]+\.[^\s]+') THEN 'url' END,
    CASE WHEN regexp_full_match(value_text, '([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}|([0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}'
                                            '|([0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}') THEN 'mac' END,
    CASE WHEN length(value_text) = 17 AND anon._vin_valid(value_text) THEN 'vin' END,
    CASE WHEN length(value_text) BETWEEN 15 AND 42 AND anon._iban_valid(value_text) THEN 'iban' END,
    CASE WHEN length(value_text) BETWEEN 13 AND 23 AND regexp_matches(value_text, '^[2-6]')
          AND anon._luhn_valid(value_text) THEN 'card' END,
    CASE WHEN regexp_full_match(value_text, '[0-9]{5}(-[0-9]{4})?') THEN 'zip' END,
    CASE WHEN regexp_full_match(value_text, '[0-9]{3,5}|[0-9]{8,9}') THEN 'zip_digits' END,
    CASE WHEN regexp_full_match(value_text, '[12][0-9]{3}[-/.](0?[1-9]|1[0-2])[-/.](0?[1-9]|[12][0-9]'
                                            '|3[01])([ T][0-9]{1,2}:[0-9]{2}.*)?'
                                            '|(0?[1-9]|1[0-2])[-/.](0?[1-9]|[12][0-9]|3[01])[-/.]([12][0-9]{3}'
                                            '|[0-9]{2})([ T][0-9]{1,2}:[0-9]{2}.*)?'
                                            '|(0?[1-9]|[12][0-9]|3[01])[/.](0?[1-9]'
                                            '|1[0-2])[/.][12][0-9]{3}([ T][0-9]{1,2}:[0-9]{2}.*)?'
                                            '|(?i)[0-9]{1,2}[- ](jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov'
                                            '|dec)[a-z]*[- ,]+([12][0-9]{3}|[0-9]{2})'
                                            '|(?i)(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov'
                                            '|dec)[a-z]*\.? [0-9]{1,2}(st|nd|rd|th)?,? [12][0-9]{3}')
          -- the first of January at midnight is what a year looks like in a column of dates
          AND NOT regexp_full_match(value_text, '[12][0-9]{3}-01-01([ T]00:00(:00(\.0+)?)?([+-][0-9:]+'
                                                '|Z)?)?') THEN 'date' END,
    CASE WHEN regexp_full_match(value_text, '(1[89]|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]'
                                            '|3[01])') THEN 'date_digits' END,
    CASE WHEN regexp_full_match(value_text, '(9[0-9]|1[0-2][0-9])(\.[0-9]*)?') THEN 'over_89_digits' END,
    -- at least six characters, no space, with a digit: UUIDs, hashes, keys such as AB-00123, but no decimal numbers
    CASE WHEN regexp_full_match(value_text, '[\pL\pN_./:#{}=+-]{6,}') AND regexp_matches(value_text, '[0-9]')
          AND NOT regexp_full_match(value_text, '[+-]?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?') THEN 'code' END
], lambda shape: shape IS NOT NULL);
COMMENT ON MACRO anon._value_shapes IS 'The shapes of direct identifiers that one value has.';
