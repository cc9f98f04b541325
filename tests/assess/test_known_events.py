"""`anon.known_events` against brute force: every choice of a person's rows, and everybody who holds it."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from tests.profiles import dear

ROW = st.tuples(
    st.integers(0, 7),  # person
    st.sampled_from(["visits", "labs"]),
    st.sampled_from(["a", "b", None]),
    st.sampled_from([1, 2, None]),
    st.sampled_from(["flu", "gout", None]),
)
ROWS = st.lists(ROW, min_size=1, max_size=40)


def held_by(rows: list[tuple], person: int) -> Counter:
    return Counter((table, a, b) for who, table, a, b, _ in rows if who == person)


def brute_force(rows: list[tuple], known: dict[str, int], k: int) -> list[tuple]:
    """The rows of the report, by looking at every person for every choice; people are in classes by parity."""
    people = sorted({row[0] for row in rows})
    records = {who: held_by(rows, who) for who in people}
    told = defaultdict(set)
    for who, *_, value in rows:
        told[who] |= {value} - {None}
    prior = Counter(value for who in people for value in told[who] or {None})
    found, least, risky, confidence, values_of, distance = [], len(people), set(), 0.0, len(prior), 0.0
    for size in range(max(known.values()) + 1):
        choices = {}
        for who in people:
            labels = sorted(records[who].elements(), key=repr)
            for chosen in set(itertools.combinations(labels, size)):
                if all(count <= known[table] for table, count in Counter(label[0] for label in chosen).items()):
                    choices.setdefault((who % 2, frozenset(Counter(chosen).items())), set())
        for parity, chosen in choices:
            need = Counter(dict(chosen))
            holders = {who for who in people if who % 2 == parity and not need - records[who]}
            choices[parity, chosen] = holders
            least = min(least, len(holders))
            values = Counter(value for who in holders for value in told[who] or {None})
            confidence = max([confidence, *(values[one] / len(holders) for one in values if one)])
            values_of = min(values_of, len(values))
            differences = (abs(values[one] / values.total() - prior[one] / prior.total()) for one in prior)
            distance = max(distance, sum(differences) / 2)
            if len(holders) < k:
                risky |= holders
        if choices:
            rare = sum(len(holders) < k for holders in choices.values())
            found.append((size, len(choices), least, rare, len(people), len(risky), confidence, values_of, distance))
    return found


def report(con: duckdb.DuckDBPyConnection, rows: list[tuple], known: dict[str, int], k: int) -> list[tuple]:
    events = pa.table(
        {
            name: pa.array([row[place] for row in rows], kind)
            for place, (name, kind) in enumerate(
                {
                    "who": pa.int32(),
                    "kept_in": pa.string(),
                    "a": pa.string(),
                    "b": pa.int8(),
                    "told": pa.string(),
                }.items()
            )
        }
    )
    con.register("random_events", events)
    for table in known:  # the second column exists in one table only, and the order of the columns differs
        columns = "b, told, who, a, who % 2 AS parity" if table == "visits" else "who, a, b, who % 2 AS parity, told"
        con.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT {columns} FROM random_events WHERE kept_in = '{table}'")
    query = (
        "FROM anon.known_events($tables, 'who', ['a', 'b'], known := $known, class := ['parity'], k := $k, "
        "sensitive := 'told')"
    )
    given_known = f"MAP {known}"
    written = query.replace("$tables", str(list(known))).replace("$known", given_known).replace("$k", str(k))
    return [(*row[:6], *row[7:]) for row in con.execute(written).fetchall()]


@pytest.mark.thorough
@dear
@given(
    ROWS,
    st.fixed_dictionaries({"visits": st.integers(1, 3), "labs": st.integers(0, 3)}),
    st.integers(2, 4),
)
def test_is_brute_force(con: duckdb.DuckDBPyConnection, rows: list[tuple], known: dict[str, int], k: int) -> None:
    """Choices, the smallest number of people, rare choices, people at risk and what is told, for m = 1, 2, 3."""
    assert report(con, rows, known, k) == [pytest.approx(row) for row in brute_force(rows, known, k)]
