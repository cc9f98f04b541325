-- anon._iban_valid: whether an international bank account number has the right check digits (ISO 13616): the first four
-- characters moved to the end and letters read as 10 to 35, the number leaves one when divided by 97. The remainder is
-- carried from character to character, since the whole number has up to 68 digits.
--     account_text: the IBAN, upper or lower case, spaces allowed
-- test: tests/assess/direct_identifiers.test
CREATE OR REPLACE MACRO anon._iban_valid(account_text) AS
CASE WHEN regexp_full_match(account_text, '[A-Za-z]{2}[0-9]{2}( ?[A-Za-z0-9]){11,30}')
     THEN list_reduce(
              list_transform(
                  string_split('0' || regexp_replace(upper(replace(account_text, ' ', '')), '^(.{4})(.*)$', '\2\1'),
                               ''),
                  lambda letter: CASE WHEN letter >= 'A' THEN ascii(letter) - 55 ELSE ascii(letter) - 48 END),
              lambda remainder, digit: (remainder * CASE WHEN digit > 9 THEN 100 ELSE 10 END + digit) % 97) = 1
     WHEN account_text IS NOT NULL THEN false END;
COMMENT ON MACRO anon._iban_valid IS 'Whether an international bank account number has the right check digits.';
