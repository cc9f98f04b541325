"""Criteria for sensitive values: against the definitions, and the numbers of ARX and sdcMicro."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from tests.profiles import dear
from tests.sqltest import data_file

KEYS = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
ROW = st.tuples(
    st.sampled_from([1, 2, None]), st.sampled_from(["x", "y", "z", None]), st.sampled_from(["p", "q", "r", None])
)


def holders(rows: list[tuple], person: bool) -> dict[str | None, set]:
    """Return who has each value."""
    found = defaultdict(set)
    for number, (_, value, who) in enumerate(rows):
        found[value] |= ({who} - {None}) if person else {number}
    return found


def votes(rows: list[tuple], person: bool) -> Counter:
    """Return the votes of each value, one a person."""
    own = Counter(who for _, _, who in rows)
    return sum(
        (Counter({value: 1 / own[who] if person else 1}) for _, value, who in rows if who or not person), Counter()
    )


def entropy_of(found: Counter) -> float:
    total = sum(found.values())
    return math.exp(-sum(share / total * math.log(share / total) for share in found.values()))


@pytest.mark.thorough
@dear
@given(st.lists(ROW, min_size=1, max_size=20), st.sampled_from([0.5, 1, 2, 3.5]), st.booleans())
def test_classes_against_the_definitions(
    shared: duckdb.DuckDBPyConnection, rows: list[tuple], c: float, person: bool
) -> None:
    table = pa.table(
        {
            "k": pa.array([row[0] for row in rows], pa.int32()),
            "s": pa.array([row[1] for row in rows], pa.string()),
            "who": pa.array([row[2] for row in rows], pa.string()),
        }
    )
    shared.register("drawn", table)
    shared.execute("CREATE OR REPLACE TABLE visits AS FROM drawn").fetchall()
    option = ", person := 'who'" if person else ""
    call = f"('visits', ['k'], 's', c := {c}{option})"
    found = {row[0]: row[1:] for row in shared.execute(f"FROM anon.sensitive_risk_classes{call}").fetchall()}
    in_table = holders(rows, person)
    everybody = len(set().union(*in_table.values()))
    expected = {}
    for k in {row[0] for row in rows}:
        members = [row for row in rows if row[0] == k]
        in_class = {value: people for value, people in holders(members, person).items() if people}
        size = len(set().union(*in_class.values())) if in_class else 0
        if not size:
            expected[k] = (0, math.inf, math.inf, math.inf, 0, 0, 0)
            continue
        ratios = {v: len(people) / size / (len(in_table[v]) / everybody) for v, people in in_class.items()}
        counts = sorted(map(len, in_class.values()), reverse=True)
        allowed = [place for place in range(1, len(counts) + 1) if counts[0] < c * sum(counts[place - 1 :])]
        beta = max(0, *(ratio - 1 for ratio in ratios.values()))
        is_beyond = any(ratio - 1 > -math.log(len(in_table[v]) / everybody) for v, ratio in ratios.items())
        delta = max(abs(math.log2(ratio)) for ratio in ratios.values())
        entropy = entropy_of(votes(members, person))
        enhanced = math.inf if is_beyond else beta
        expected[k] = (size, beta, enhanced, delta, max([1, *allowed]), size / counts[0], entropy)
    assert found == {k: pytest.approx(values, abs=1e-9) for k, values in expected.items()}
    worst = [value for (value,) in shared.execute(f"SELECT value FROM anon.sensitive_risk{call}").fetchall()]
    columns = list(zip(*(values[1:] for values in expected.values()), strict=True))
    assert worst == pytest.approx([*map(max, columns[:3]), *map(min, columns[3:])], abs=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["race__education", "sex__workclass", "sex_marital__education"])
def test_arx(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Each criterion between the two numbers at which ARX's verdict changes; recursive l at its critical c."""
    complete = "'?' NOT IN (workclass, occupation, native_country)"
    con.execute(f"CREATE TABLE adult AS FROM read_csv('{data_file('adult.csv')}') WHERE {complete}").fetchall()
    text = data_file(f"risk/arx_criteria_{name}.txt").read_text()
    keys, sensitive = name.split("__")
    columns = ["marital_status" if key == "marital" else key for key in keys.split("_")]
    call = f"FROM anon.sensitive_risk('adult', {columns}, '{sensitive}'"
    found = dict(con.execute(f"SELECT measure, value {call})").fetchall())
    for measure, criterion in (
        ("basic_beta_likeness", "BasicBLikeness beta"),
        ("enhanced_beta_likeness", "EnhancedBLikeness beta"),
        ("delta_disclosure", "DDisclosurePrivacy delta"),
        ("people_entropy_l", "EntropyLDiversity shannon l"),
    ):
        critical = re.findall(rf"{criterion} critical in \[(\S+), (\S+)\]", text)
        if not critical:
            assert f"{criterion} constant false" in text
            assert found[measure] == math.inf
        else:
            low, high = map(float, critical[0])
            assert low * (1 - 1e-9) <= found[measure] <= high * (1 + 1e-9), measure
    criticals = re.findall(r"RecursiveCLDiversity l=(\d) c critical in \[(\S+), (\S+)\]", text)
    assert len(criticals) >= 3
    for level, low, high in criticals:
        for c, is_diverse in ((low, False), (high, True)):
            (value,) = con.execute(f"SELECT value {call}, c := {c}) WHERE measure = 'recursive_l'").fetchall()[0]
            assert (value >= int(level)) == is_diverse, (level, c)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("file", "keys", "sensitive", "c"),
    [
        ("testdata_ldiv_hhcivil_age_c2", KEYS, "hhcivil", 2),
        ("testdata_ldiv_hhcivil_age_c2", KEYS, "age", 2),
        ("testdata_ldiv3keys_hhcivil_relat_c3", ["urbrur", "roof", "sex"], "hhcivil", 3),
        ("testdata_ldiv3keys_hhcivil_relat_c3", ["urbrur", "roof", "sex"], "relat", 3),
    ],
)
def test_sdcmicro(con: duckdb.DuckDBPyConnection, file: str, keys: list[str], sensitive: str, c: int) -> None:
    """Recursive and entropy l-diversity of every row."""
    numbered = f"SELECT *, row_number() OVER () AS place FROM read_csv('{data_file('risk/testdata.csv')}')"
    con.execute(f"CREATE TABLE testdata AS {numbered}").fetchall()
    compared = con.execute(
        f"""SELECT count(*), max(abs(recursive_l - {sensitive}_Recursive_Ldiversity)),
                   max(abs(people_entropy_l - {sensitive}_Entropy_Ldiversity))
            FROM testdata JOIN anon.sensitive_risk_classes('testdata', {keys}, '{sensitive}', c := {c}) AS classes
                               USING ({", ".join(keys)})
                 JOIN read_csv('{data_file(f"risk/{file}.csv")}') AS theirs ON place = theirs.row"""
    ).fetchall()[0]
    assert compared[0] == 4580
    assert compared[1:] == pytest.approx((0, 0), abs=1e-9)


def test_sdcmicro_with_nulls(con: duckdb.DuckDBPyConnection) -> None:
    """NULL is one more category of the sensitive column, and a value of the others."""
    path = data_file("risk/edge_ldiv.csv")
    con.execute(f"CREATE TABLE gaps AS FROM read_csv('{path}', nullstr = ['NA', ''])").fetchall()
    compared = con.execute(
        """SELECT count(*), max(abs(recursive_l - s_Recursive_Ldiversity)),
                  max(abs(people_entropy_l - s_Entropy_Ldiversity))
           FROM gaps JOIN anon.sensitive_risk_classes('gaps', ['k'], 's') AS classes
                          ON gaps.k IS NOT DISTINCT FROM classes.k"""
    ).fetchall()[0]
    assert compared == (8, 0, pytest.approx(0, abs=1e-9))
