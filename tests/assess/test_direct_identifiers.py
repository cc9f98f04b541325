"""Direct identifiers: what must be found by name and by value, and what must not."""

from __future__ import annotations

import duckdb
import pytest

HITS = {
    "name": """
        name names first_name FirstName LASTNAME patient-name MothersMaidenName surname fname full_name
        employer_name Initials name_2 contactName subject_name
    """,
    "geographic_subdivision": """
        address home_address StreetAddress street city County census_tract latitude lon birthPlace
        mailing_address addr2 city_name PUMA
    """,
    "zip": """
        zip homeZip zip_code ZIPCODE postal-code postcode zip5 ZipCode patient_zip
    """,
    "date": """
        dob DOB date_of_birth birthDate admission_date DischargeDate visit_dt birth_month service_date
        BIRTHDATE
    """,
    "age_over_89": """
        age Age patient_age age_years ageYears age_at_admission AGE
    """,
    "phone": """
        phone home_phone PhoneNumber telephone tel mobile cell_phone phone1 Téléphone mobileNo
    """,
    "fax": """
        fax fax_number FaxNo home-fax
    """,
    "email": """
        email e-mail Email_Address eMail emailAddress work_email
    """,
    "ssn": """
        ssn patient-ssn SSN social_security_number patientSSN SocialSecurityNo
    """,
    "medical_record_number": """
        mrn MRN medical_record_number medicalRecordNo patient_number chart_no
    """,
    "health_plan_number": """
        member_id beneficiary_number health_plan_id policyNumber medicaid_id insurance_no subscriberId MBI
    """,
    "account_number": """
        account_number acct_no bankAccount iban credit_card_number cardNumber account
    """,
    "license_number": """
        license_number drivers_license DriverLicenseNo passport_no certificate_number licence
    """,
    "vehicle": """
        vin license_plate vehicle_id VIN LicensePlate plate_number
    """,
    "device": """
        imei serial_number deviceId mac_address device_serial MacAddr udi
    """,
    "url": """
        url website homepage profile_url webSite
    """,
    "ip_address": """
        ip ip_address clientIP IPAddress ipv4 remote_addr ipaddr
    """,
    "biometric": """
        fingerprint voice_print retina_scan biometric_id faceTemplate
    """,
    "photo": """
        photo face_image patientPhoto headshot profile_picture
    """,
    "unique_code": """
        patient_id subjectId participant_id user_name username PersonUUID employee_id national_id tax_id
        uuid
    """,
}

NOT_HITS = """
    state_code mean_age island mailing_list_size phonetic skin_color discipline capacity velocity update candidate
    ipsum ship trip age_group stage page average manage language voltage file_name drug_name country_name
    table_name state_name hospital_name state country region year birth_year year_of_birth yob account_type
    account_balance phone_type email_count has_phone is_email_verified n_children num_addresses device_type
    serial_interval plate_well white_cell_count cell_type urinary_tract iris dna_yield license_type vehicle_type
    photosynthesis photo_count telomere telemetry faxed_count machine winding vintage curly hurl zipper validate
    mandate datum ethnicity scarcity publicity sex race income education occupation relationship workclass fnlwgt
    hours_per_week capital_gain marital_status diagnosis lab_result species genus membership policy insurance_type
    visit_count dosage package image_width bus_stop blood_type emails_sent_count cardinal card_color discard
    accountability ssnapshot latency late lateral longevity citycenter_flag max_age gestational_age vehicle_age
    min_date_format height weight bmi systolic_bp glucose dose method_name variable_name question_name plan_name
    product_id country_id item_number visit_number admission_no id_type hospital_id site_id
"""

BY_VALUES = """CREATE TABLE by_values AS SELECT CASE WHEN i % 10 <> 0 THEN COLUMNS(* EXCLUDE i) END FROM (SELECT i,
  'user' || i || '@example.org' AS c01,
  '(212) 555-01' || lpad((i % 100)::VARCHAR, 2, '0') AS c02,
  ['078-05-1120', '219-09-9999'][1 + i % 2] AS c03,
  '192.0.2.' || (i % 250) AS c04,
  '2001:db8::' || to_hex(i + 1) AS c05,
  'https://example.org/p/' || i AS c06,
  '00:00:5e:00:53:' || lpad(lower(to_hex(i % 256)), 2, '0') AS c07,
  ['1M8GDM9AXKP042788', '5GZCZ43D13S812715'][1 + i % 2] AS c08,
  ['GB82 WEST 1234 5698 7654 32', 'DE89370400440532013000', 'FR1420041010050500013M02606',
  'NL91ABNA0417164300'][1 + i % 4] AS c09,
  ['4111 1111 1111 1111', '5555-5555-5555-4444', '378282246310005', '6011111111111117',
  '3530111333300000'][1 + i % 5] AS c10,
  [4111111111111111, 5555555555554444, 378282246310005][1 + i % 3] AS c11,
  lpad((1000 + i * 97)::VARCHAR, 5, '0') AS c12,
  lpad((1000 + i * 97)::VARCHAR, 5, '0') || '-' || (1000 + i) AS c13,
  DATE '1950-02-03' + (i * 17)::INTEGER AS c14,
  TIMESTAMP '2020-02-03 04:05:06' + INTERVAL (i) HOUR AS c15,
  strftime(DATE '1950-02-03' + (i * 17)::INTEGER, '%m/%d/%Y') AS c16,
  strftime(DATE '1950-02-03' + (i * 17)::INTEGER, '%Y-%m-%d') AS c17,
  strftime(DATE '1950-02-03' + (i * 17)::INTEGER, '%d-%b-%Y') AS c18,
  i AS c19,
  md5(i::VARCHAR) AS c20,
  uuid() AS c21,
  'AB-' || (100000 + i) AS c22,
  '+49 30 23125 ' || (100 + i % 900) AS c23
  FROM range(400) AS r(i))"""
KINDS = """
    c01 email  c02 phone  c03 ssn  c04 ip_address  c05 ip_address  c06 url  c07 device  c08 vehicle  c09 account_number
    c10 account_number  c11 account_number  c12 zip  c13 zip  c14 date  c15 date  c16 date  c17 date  c18 date
    c19 unique_code  c20 unique_code  c21 unique_code  c22 unique_code  c23 phone
"""
NO_VALUES = """CREATE TABLE no_values AS SELECT
  ['000-12-3456', '666-12-3456', '900-12-3456', '123-00-4567', '123-45-0000'][1 + i % 5] AS bad_dashes,
  (10000 + i % 50 * 900) AS five_digits_integer,
  ['4111111111111112', '5555555555554445'][1 + i % 2] AS bad_luhn,
  ['DE89370400440532013001', 'GB82WEST12345698765433'][1 + i % 2] AS bad_mod97,
  ['1M8GDM9A1KP042788', '5GZCZ43D23S812715'][1 + i % 2] AS bad_check,
  ['256.1.1.1', '1.2.3', '1.2.3.4.5'][1 + i % 3] AS bad_dots,
  ['12:34:56', '1::2::3', '12345::1'][1 + i % 3] AS bad_colons,
  ['a@b', '@example', 'see a@example.org for more'][1 + i % 3] AS bad_at,
  ['13/45/2020', '2020-13-01', '99-99-9999'][1 + i % 3] AS bad_day,
  (i % 200)::DOUBLE / 7 AS measure, random() AS noise, 'free text with words ' || i AS words,
  (i / 700)::VARCHAR AS text_number, i % 120 AS points, i % 2 = 0 AS yes,
  ['Female', 'Male'][1 + i % 2] AS sex, ['A10.1', 'B20'][1 + i % 2] AS icd, 1900 + i % 120 AS yr_built,
  ['12345', '99213'][1 + i % 2] AS cpt_code, DATE '1900-01-01' + INTERVAL (i % 100) YEAR AS born, [i,
  i + 1] AS listing, {'a': i} AS structure, 'x'::BLOB AS b
  FROM range(400) AS r(i)"""
NAMED = """CREATE TABLE named AS SELECT 'u' || i || '@example.org' AS email, '212-555-01' || (10 + i % 90) AS fax,
  '212-555-01' || (10 + i % 90) AS phone,
  2125550100 + i % 100 AS mobile, [78051120, 219099999][1 + i % 2] AS ssn, [2139, 10001][1 + i % 2] AS zip,
  i % 100 AS age, (i % 80)::VARCHAR AS "Age 2",
  19500203 + i % 20 AS dob, ['490154203237518', '353879234252633'][1 + i % 2] AS imei,
  CASE WHEN i % 4 = 0 THEN 'u@example.org' ELSE '-' END AS a_quarter,
  CASE WHEN i % 4 > 0 THEN 'u@example.org' ELSE 'none' END AS three_quarters, '12345' AS mrn,
  'P' || (10000 + i) AS patient_id, i % 7 AS customer_id,
  'user' || i || '@example.org' AS username, CASE WHEN i % 2 = 0 THEN '' ELSE ' 192.0.2.7 ' END AS blank_half,
  '2020-02-03' AS name
  FROM range(200) AS r(i)"""
BIG = """CREATE TABLE big AS SELECT i AS id, i // 5 AS visit_of, hash(i) % 200000 AS salary,
  'u' || i || '@example.org' AS mail, md5(i::VARCHAR) AS h, random() AS r,
  DATE '2000-01-05' + (i % 300)::INTEGER AS d, i % 97 AS a, 'abc def' AS txt, 'N' || (i % 1000) AS code,
  i * 7.5 AS amount, ['x', 'y'][1 + i % 2] AS g
  FROM range(1000000) AS t(i)"""


def found(con: duckdb.DuckDBPyConnection, table: str, options: str = "") -> list[tuple]:
    return con.execute(
        f"""SELECT column_name, category, evidence, round(match_fraction, 3), sampled_values
            FROM anon.direct_identifiers('{table}'{options})"""
    ).fetchall()


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def test_by_values_alone(shared: duckdb.DuckDBPyConnection) -> None:
    """Every category under a name that says nothing, every tenth value NULL."""
    shared.execute(BY_VALUES).fetchall()
    rows = found(shared, "by_values")
    words = KINDS.split()
    assert [row[:3] for row in rows] == [
        (name, kind, "values") for name, kind in zip(words[::2], words[1::2], strict=True)
    ]
    assert min(row[3] for row in rows) > 0.99
    assert {row[4] for row in rows} == {360}


def test_values_that_only_look_alike(shared: duckdb.DuckDBPyConnection) -> None:
    """Wrong check digits, impossible numbers, measurements, years: nothing is found."""
    shared.execute(NO_VALUES).fetchall()
    assert found(shared, "no_values") == []


@pytest.mark.thorough
@pytest.mark.parametrize("category", HITS)
def test_names_that_hit(shared: duckdb.DuckDBPyConnection, category: str) -> None:
    waiting = [*HITS[category].split(), *(["Patient Name"] if category == "name" else [])]
    while waiting:  # a table's names differ in more than capitals
        names = list({name.lower(): name for name in waiting}.values())
        waiting = [name for name in waiting if name not in names]
        columns = ", ".join(f"NULL::VARCHAR AS {quoted(name)}" for name in names)
        shared.execute(f"CREATE OR REPLACE TABLE one AS SELECT {columns} FROM range(30)").fetchall()
        assert found(shared, "one") == [(name, category, "name", None, 0) for name in names]


@pytest.mark.thorough
def test_names_that_do_not_hit(shared: duckdb.DuckDBPyConnection) -> None:
    columns = ", ".join(f"NULL::VARCHAR AS {quoted(name)}" for name in NOT_HITS.split())
    shared.execute(f"CREATE OR REPLACE TABLE one AS SELECT {columns} FROM range(30)").fetchall()
    assert found(shared, "one") == []
    shared.execute(
        "CREATE OR REPLACE TABLE one AS SELECT i % 2 = 0 AS phone, true AS photo FROM range(30) AS r(i)"
    ).fetchall()
    assert found(shared, "one") == []


@pytest.mark.thorough
def test_name_and_values_together(shared: duckdb.DuckDBPyConnection) -> None:
    shared.execute(NAMED).fetchall()
    assert [row[:4] for row in found(shared, "named")] == [
        ("email", "email", "name and values", 1.0),
        ("fax", "fax", "name and values", 1.0),
        ("phone", "phone", "name and values", 1.0),
        ("mobile", "phone", "name and values", 1.0),
        ("ssn", "ssn", "name and values", 1.0),
        ("zip", "zip", "name and values", 1.0),
        ("age", "age_over_89", "name and values", 0.1),
        ("Age 2", "age_over_89", "name", 0.0),
        ("dob", "date", "name and values", 1.0),
        ("imei", "device", "name and values", 1.0),
        ("three_quarters", "email", "values", 0.75),
        ("mrn", "medical_record_number", "name", None),
        ("patient_id", "unique_code", "name and values", 1.0),
        ("customer_id", "unique_code", "name", 0.035),
        ("username", "email", "values", 1.0),
        ("username", "unique_code", "name and values", 1.0),
        ("blank_half", "ip_address", "values", 1.0),
        ("name", "name", "name", None),
        ("name", "date", "values", 1.0),
    ]
    assert ("a_quarter", "email", "values", 0.25, 200) in found(shared, "named", ", min_match_fraction := 0.2")
    assert "three_quarters" not in [row[0] for row in found(shared, "named", ", min_match_fraction := 0.9")]


def test_odd_column_names(shared: duckdb.DuckDBPyConnection) -> None:
    names = [
        "names",
        "types",
        "place",
        "row_values",
        "value_text",
        "_t",
        "_duckanon_sample",
        "column_name",
        "kind",
        "rule",
    ]
    names += [
        "category",
        "fraction",
        "tbl",
        "sample_rows",
        "shapes",
        "SELECT",
        'a "quoted" one',
        "it's",
        " spaced  out ",
    ]
    names += [
        "ÜBER größe",
        "名前",
        "Имя",
        "😀",
        "semi;colon",
        "per%cent",
        "back\\slash",
        "a.b",
        "_",
        "1st",
        "CamelHTTPName",
    ]
    columns = ", ".join(f"'u' || i || '@example.org' AS {quoted(name)}" for name in names)
    shared.execute(f"CREATE OR REPLACE TABLE odd AS SELECT {columns} FROM range(40) AS r(i)").fetchall()
    rows = found(shared, "odd")
    assert [row[0] for row in rows if row[1] == "email"] == names
    assert [row[:2] for row in rows if row[1] != "email"] == [("names", "name"), ("CamelHTTPName", "name")]


def test_every_type_is_judged(shared: duckdb.DuckDBPyConnection) -> None:
    shared.execute(
        """CREATE OR REPLACE TABLE typed AS
           SELECT ['a@example.org', 'b@example.org'][1 + i % 2]::ENUM('a@example.org', 'b@example.org') AS e,
                  i::HUGEINT AS h, i::UTINYINT AS u, i::DECIMAL(9, 2) AS d, TIME '10:00:00' AS t,
                  INTERVAL 1 DAY AS iv,
                  '101'::BIT AS bits, '{}'::JSON AS j, MAP {'a': i} AS m, [1.0, i]::DOUBLE[2] AS emb,
                  DATE '2020-02-02' AS dd, TIMESTAMP_NS '2020-02-02 01:01:01' AS ns
           FROM range(100) AS r(i)"""
    ).fetchall()
    assert [row[:2] for row in found(shared, "typed")] == [
        ("e", "email"),
        ("h", "unique_code"),
        ("u", "unique_code"),
        ("dd", "date"),
        ("ns", "date"),
    ]


@pytest.mark.thorough
def test_a_million_rows_are_sampled(shared: duckdb.DuckDBPyConnection) -> None:
    """Repeatably, and values that repeat in the table are not called unique because they differ in the sample."""
    shared.execute(BIG).fetchall()
    rows = found(shared, "big")
    assert [row[:2] for row in rows] == [("id", "unique_code"), ("mail", "email"), ("h", "unique_code"), ("d", "date")]
    assert 9500 < rows[0][4] < 10500
    assert found(shared, "big") == rows
    assert 60 < found(shared, "big", ", sample_rows := 100")[0][4] < 140


CHECK_DIGITS = {
    "_luhn_valid": (["4111 1111 1111 1111", "378282246310005"], ["4111111111111112", "4111", "x", ""]),
    "_iban_valid": (["GB82 WEST 1234 5698 7654 32", "de89370400440532013000"], ["GB82WEST12345698765433", "DE89", ""]),
    "_vin_valid": (["1M8GDM9AXKP042788", "5gzcz43d13s812715"], ["1M8GDM9A1KP042788", "1M8GDM9AXKP04278", "O" * 17]),
    "_ipv6_valid": (["2001:db8::1", "::", "::ffff:192.0.2.1", "fe80::1%eth0"], ["1::2::3", "12345::1", "1:2:3", ""]),
}


@pytest.mark.parametrize("name", CHECK_DIGITS)
def test_check_digits(shared: duckdb.DuckDBPyConnection, name: str) -> None:
    good, bad = CHECK_DIGITS[name]
    for value in (*good, *bad):
        assert shared.execute(f"SELECT anon.{name}(?)", [value]).fetchall() == [(value in good,)], value
    assert shared.execute(f"SELECT anon.{name}(NULL)").fetchall() == [(None,)]
