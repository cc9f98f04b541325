-- anon.safe_harbor_zip: a US ZIP code by the HIPAA safe harbor, 45 CFR 164.514(b)(2)(i)(B): its first three digits, or
-- 000 where 20,000 or fewer people live in the area of these three digits.
--     zip         ZIP code: 02139, 02139-1234, 2139 (a number that lost its zero). NULL stays NULL, and an invalid code
--                 becomes NULL too: it must not pass, and one bad cell should not stop a release [a text or a whole
--                 number]
--     small_zip3  areas of 20,000 or fewer people; NULL: the seventeen that the guidance of HHS (2012) names from the
--                 2000 Census. The rule asks for current data of the Census Bureau: pass your own list [a list of three
--                 digits each, or NULL]
-- promises: FunctionOfValue(), EqualsDefinition()
-- test: tests/generalize/safe_harbor_zip.test
CREATE OR REPLACE MACRO anon.safe_harbor_zip(zip, small_zip3 := NULL) AS
    CASE WHEN NOT coalesce(list_bool_and(
                               list_transform(TRY_CAST(small_zip3 AS VARCHAR[]),
                                              lambda area: coalesce(regexp_full_match(area, '\d{1,3}'), false))),
                           small_zip3 IS NULL OR ends_with(typeof(small_zip3), ']'))
              THEN CAST(anon._refuse(anon._must_be('anon.safe_harbor_zip', 'small_zip3',
                                                   'a list of three-digit areas such as [''036'']', small_zip3))
                        AS VARCHAR)
         -- five digits, with the leading zeros that a number loses, nine of ZIP+4, three of what was cut before
         ELSE list_transform(
                  [left(CASE WHEN anon._kind(typeof(zip)) = 'text'
                                  AND regexp_full_match(trim(CAST(zip AS VARCHAR)), '\d{3}')
                                  THEN trim(CAST(zip AS VARCHAR))
                             WHEN regexp_full_match(trim(CAST(zip AS VARCHAR)), '\d{1,5}(\.0)?')
                                  THEN lpad(string_split(trim(CAST(zip AS VARCHAR)), '.')[1], 5, '0')
                             WHEN regexp_full_match(trim(CAST(zip AS VARCHAR)), '\d{5}[- ]\d{4}|\d{7,9}(\.0)?')
                                  THEN lpad(regexp_replace(string_split(trim(CAST(zip AS VARCHAR)), '.')[1],
                                                           '[- ]', ''), 9, '0') END, 3)],
                  lambda area: CASE WHEN list_contains(
                      coalesce(list_transform(TRY_CAST(small_zip3 AS VARCHAR[]), lambda small: lpad(small, 3, '0')),
                               ['036', '059', '063', '102', '203', '556', '692', '790', '821', '823', '830', '831',
                                '878', '879', '884', '890', '893']), area) THEN '000' ELSE area END)[1] END;
COMMENT ON MACRO anon.safe_harbor_zip IS
    'The first three digits of a ZIP code, 000 where 20,000 or fewer people live (HIPAA safe harbor).';
