-- anon._vin_valid: whether a vehicle identification number has the right check digit, the ninth of its seventeen
-- characters (49 CFR 565.15): letters read as digits, weighted by place, remainder of eleven, X for ten. Makers for the
-- North American market set it, others need not.
--     vehicle_text: the number, upper or lower case; the letters I, O and Q do not occur in one
-- test: tests/assess/direct_identifiers.test
CREATE OR REPLACE MACRO anon._vin_valid(vehicle_text) AS
CASE WHEN regexp_full_match(vehicle_text, '(?i)[A-HJ-NPR-Z0-9]{8}[0-9X][A-HJ-NPR-Z0-9]{8}')
     THEN CAST(list_sum(list_transform(range(1, 18), lambda place:
                   CAST(translate(upper(vehicle_text[place]), 'ABCDEFGHJKLMNPRSTUVWXYZ', '12345678123457923456789')
                        AS INTEGER)
                   * [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2][place])) % 11 AS VARCHAR)
          = replace(upper(vehicle_text[9]), 'X', '10')
     WHEN vehicle_text IS NOT NULL THEN false END;
COMMENT ON MACRO anon._vin_valid IS 'Whether a vehicle identification number has the right check digit.';
