"""Pseudonyms against Python's hmac; shifts and masks against what an attacker would try."""

from __future__ import annotations

import hmac
import re
from datetime import date, datetime, timedelta
from fractions import Fraction

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.profiles import dear

KEY = "a key that only the tests know"

texts = st.text(st.characters(codec="utf-8"), max_size=200)
keys = st.one_of(st.binary(min_size=16, max_size=200), st.text(st.characters(codec="utf-8"), min_size=16, max_size=80))


def as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


@dear
@given(value=st.one_of(texts, st.binary(max_size=200)), key=keys, length=st.integers(8, 64))
def test_pseudonyms_are_pythons_hmac(
    shared: duckdb.DuckDBPyConnection, value: str | bytes, key: str | bytes, length: int
) -> None:
    expected = hmac.new(as_bytes(key), as_bytes(value), "sha256").hexdigest()[:length]
    assert shared.execute("SELECT anon.pseudonym($1, $2, $3)", [value, key, length]).fetchall() == [(expected,)]


@pytest.mark.parametrize("bytes_of_key", [16, 63, 64, 65, 128, 1000])
def test_keys_around_the_size_of_a_block(con: duckdb.DuckDBPyConnection, bytes_of_key: int) -> None:
    """From 65 bytes on a key is hashed first."""
    key = bytes(index % 256 for index in range(bytes_of_key))
    rows = con.execute("SELECT i, anon.pseudonym(i, $1) FROM range(2500) AS t(i)", [key]).fetchall()
    assert rows == [(i, hmac.new(key, str(i).encode(), "sha256").hexdigest()) for i, _ in rows]


@pytest.mark.thorough
@dear
@given(key=st.one_of(st.binary(max_size=15), st.text(st.characters(codec="ascii"), min_size=1, max_size=15)))
def test_a_refusal_says_nothing_of_a_key_but_its_length(shared: duckdb.DuckDBPyConnection, key: str | bytes) -> None:
    for call in ("anon.pseudonym('x', $1)", "anon.shift_date(DATE '2020-01-01', 'x', $1)"):
        with pytest.raises(duckdb.Error, match=rf"at least 16 bytes; got one of {len(as_bytes(key))}\.$"):
            shared.execute(f"SELECT {call}", [key]).fetchall()


@pytest.mark.thorough
def test_a_time_zone_changes_no_pseudonym_and_no_interval(con: duckdb.DuckDBPyConnection) -> None:
    """Written as text, a moment was another one in every zone; a day of summer time's end has 25 hours."""
    results = set()
    for zone in ("UTC", "America/New_York", "Asia/Kathmandu"):
        con.execute(f"SET TimeZone = '{zone}'").fetchall()
        results.add(
            con.execute(
                """SELECT anon.pseudonym(moment, $1), epoch_us(anon.shift_date(moment, 'anna', $1)) - epoch_us(moment)
                   FROM (SELECT TIMESTAMPTZ '2024-07-01 00:30:00+00' AS moment)""",
                [KEY],
            ).fetchone()
        )
    assert len(results) == 1
    assert results.pop()[1] % 86_400_000_000 == 0


def shifts(con: duckdb.DuckDBPyConnection, people: int, max_days: int) -> list[int]:
    query = (
        "SELECT anon.shift_date(DATE '2020-01-01', i, $1, max_days := $2) - DATE '2020-01-01' FROM range($3) AS t(i)"
    )
    return [days for (days,) in con.execute(query, [KEY, max_days, people]).fetchall()]


@pytest.mark.thorough
@pytest.mark.parametrize("max_days", [1, 7, 365])
def test_shifts_are_uniform_and_never_none(con: duckdb.DuckDBPyConnection, max_days: int) -> None:
    drawn = shifts(con, 40_000, max_days)
    counts = [drawn.count(days) for days in range(-max_days, max_days + 1) if days]
    assert sum(counts) == len(drawn)
    assert stats.chisquare(counts).pvalue > 1e-4  # the key is fixed, and so are the counts


def test_the_published_pseudonym_does_not_tell_the_shift(con: duckdb.DuckDBPyConnection) -> None:
    """Were the shift computed from the pseudonym, everybody could compute it: both have the same person and key."""
    rows = con.execute(
        """SELECT anon.pseudonym(i, $1), anon.shift_date(DATE '2020-01-01', i, $1) - DATE '2020-01-01'
           FROM range(2000) AS t(i)""",
        [KEY],
    ).fetchall()
    for digits in (slice(0, 16), slice(48, 64)):
        guessed = [int(pseudonym[digits], 16) % 730 for pseudonym, _ in rows]
        guessed = [place - 365 + (place >= 365) for place in guessed]
        assert sum(guess == days for guess, (_, days) in zip(guessed, rows, strict=True)) < 20


@pytest.mark.thorough
@dear
@given(
    moments=st.lists(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)), min_size=2, max_size=5),
    person=st.one_of(texts, st.integers(-(2**63), 2**63 - 1)),
    max_days=st.integers(1, 36_500),
)
def test_intervals_stay_exactly(
    shared: duckdb.DuckDBPyConnection, moments: list[datetime], person: str | int, max_days: int
) -> None:
    shifted = shared.execute(
        """SELECT anon.shift_date(moment, $1, $2, max_days := $3), anon.shift_date(moment::DATE, $1, $2, max_days := $3)
           FROM (SELECT unnest($4::TIMESTAMP[]) AS moment)""",
        [person, KEY, max_days, moments],
    ).fetchall()
    moved = {after - before for before, (after, _) in zip(moments, shifted, strict=True)}
    days_moved = {day - before.date() for before, (_, day) in zip(moments, shifted, strict=True)}
    assert len(moved) == 1
    assert moved == days_moved  # a date and a moment of the same person move alike
    assert timedelta(0) < abs(moved.pop()) <= timedelta(max_days)


def test_what_stands_for_no_end_does_not_tell_the_shift(con: duckdb.DuckDBPyConnection) -> None:
    """9999-12-31, shifted, is a date whose original everybody knows."""
    rows = con.execute(
        "SELECT DISTINCT anon.shift_date(day, i, $1) FROM range(50) AS t(i), (VALUES (DATE '9999-12-31')) AS d(day)",
        [KEY],
    ).fetchall()
    assert rows == [(date(9999, 12, 31),)]


def collision(values: int, length: int) -> float:
    """1 - the product of (1 - i / 16^length), exactly."""
    apart = Fraction(1)
    for i in range(values):
        apart *= 1 - Fraction(i, 16**length)
    return float(1 - apart)


@pytest.mark.parametrize(("values", "length"), [(2, 8), (50, 8), (300, 9), (100, 16), (60, 64)])
def test_the_chance_of_a_collision_is_the_birthdays(con: duckdb.DuckDBPyConnection, values: int, length: int) -> None:
    (answer,) = con.execute("SELECT anon.pseudonym_collision($1, $2)", [values, length]).fetchone()
    assert answer == pytest.approx(collision(values, length), rel=1e-6)


def masked(text: str, keep_first: int, keep_last: int, structure: str) -> str:
    """Mask character by character, where those of a class neither change nor count."""
    places = [place for place, letter in enumerate(text) if not re.match(structure, letter)]
    kept = places[:keep_first] + places[len(places) - keep_last :] if keep_first + keep_last < len(places) else []
    return "".join("*" if place in places and place not in kept else letter for place, letter in enumerate(text))


def expected_mask(text: str, keep_first: int, keep_last: int) -> str:
    if re.fullmatch(r"[^@\t\n\f\r ]+@[^@\t\n\f\r ]+\.[^@\t\n\f\r ]+", text):
        name, domain = text.split("@")
        return masked(name, keep_first, 0, r"[.]") + "@" + masked(domain, 0, keep_last, r"[.]")
    if re.fullmatch(r"[-+()./ 0-9]*", text) and len(re.findall("[0-9]", text)) >= 5:
        return masked(text, keep_first, keep_last, "[^0-9]")
    return masked(text, keep_first, keep_last, r"(?!)")


addresses = st.builds(
    "{}@{}.{}".format, st.text("ab.1é+", min_size=1, max_size=6), st.text("xy.-", min_size=1, max_size=6), st.just("de")
)
phones = st.text("+0123456789 ()-./", max_size=18)


@dear
@given(text=st.one_of(texts, addresses, phones), keep_first=st.integers(0, 6), keep_last=st.integers(0, 6))
def test_masks_are_those_of_one_character_after_the_other(
    shared: duckdb.DuckDBPyConnection, text: str, keep_first: int, keep_last: int
) -> None:
    (mask,) = shared.execute("SELECT anon.mask($1, $2, $3)", [text, keep_first, keep_last]).fetchone()
    assert mask == expected_mask(text, keep_first, keep_last)
    if mask == text:  # nothing was there to be hidden
        assert set(text) <= {"*"}
