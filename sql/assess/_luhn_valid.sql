-- anon._luhn_valid: whether a number has the right last digit by the Luhn rule of payment cards (ISO/IEC 7812) and
-- device numbers (IMEI): every second digit from the right is doubled and the digits of the double are added; the sum
-- of all is divisible by ten.
--     number_text: the number, spaces and dashes allowed; 13 to 19 digits, anything else is false
-- test: tests/assess/direct_identifiers.test
CREATE OR REPLACE MACRO anon._luhn_valid(number_text) AS
CASE WHEN regexp_full_match(number_text, '[0-9]([ -]?[0-9]){12,18}')
     THEN list_transform([reverse(regexp_replace(number_text, '[ -]', '', 'g'))], lambda digits:
              list_sum(list_transform(range(1, 1 + len(digits)), lambda place:
                  CASE WHEN place % 2 = 1 THEN CAST(digits[place] AS INTEGER)
                       ELSE CAST(digits[place] AS INTEGER) * 2 % 10 + CAST(digits[place] AS INTEGER) // 5 END)))[1]
          % 10 = 0
     WHEN number_text IS NOT NULL THEN false END;
COMMENT ON MACRO anon._luhn_valid IS 'Whether a card or device number has the right Luhn check digit.';
