"""Every plot takes what its SQL function returns, shows its numbers, and says what is missing."""

from __future__ import annotations

import datetime
import math
import re
import threading
import xml.etree.ElementTree as ElementTree

import duckdb
import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from duckanon import plot
from duckanon.plot import privacy, statistics, style

HOSTILE = "<script>alert('$x$')</script>\x00\n\u202e"


def texts(figure: Figure) -> list[str]:
    drawn = ElementTree.fromstring(plot.svg(figure, "title", "description"))
    return [element.text or "" for element in drawn.iter() if element.tag.endswith("}text")]


def parts(figure: Figure) -> list[str]:
    """Say what is in a figure without drawing it, which takes most of the time."""
    return [artist.get_text() if isinstance(artist, Text) else type(artist).__name__ for artist in figure.findobj()]


def sets() -> pa.Table:
    return pa.table(
        {
            "columns": [["zip"], ["age"], ["zip", "age"], ["zip", "age", "sex"]],
            "unique_fraction": [0.1, 0.0, 0.6, 0.7],
            "unique_fraction_bound": [0.2, 0.01, 0.9, 0.95],
            "quasi_identifier_in_table": [False, False, True, True],
        }
    )


def sizes(**changes: list[int]) -> pa.Table:
    return pa.table({"class_size": [1, 4, 12, 5000], "rows": [10, 20, 30, 40]} | changes)


def risks(shift: float = 0.0) -> pa.Table:
    values = np.linspace(0, 1, 500) + shift
    return pa.table({"distance": values, "ambiguity": values, "uncertainty": values})


def projections() -> pa.Table:
    places = np.random.default_rng(1).normal(size=(1000, 3))
    return pa.table({"source": ["original"] * 500 + ["released"] * 500, "projections": places.tolist()})


def compared() -> pa.Table:
    names = ["noise", "noise", "swapped", "swapped"]
    return pa.table(
        {
            "release": names,
            "kind": ["privacy", "utility"] * 2,
            "measure": ["distance", "correlation"] * 2,
            "value": [0.3, 0.01, 0.02, 0.04],
            "pass": [False, None, True, None],
        }
    )


def correlated() -> pa.Table:
    return pa.table(
        {
            "statistic": ["mean", "correlation"],
            "column_name": ["age", "age"],
            "other_column": [None, "bmi"],
            "original": [40.0, 0.25],
            "released": [41.0, 0.75],
        }
    )


def shares() -> pa.Table:
    return pa.table(
        {"column_name": ["age", "age"], "part": ["< 30", "30 +"], "original": [0.4, 0.6], "released": [0.5, 0.5]}
    )


def box_rows() -> pa.Table:
    ends = pa.struct([("lo", pa.int32()), ("hi", pa.int32())])
    days = pa.struct([("lo", pa.date32()), ("hi", pa.date32())])
    day = datetime.date(2020, 1, 1)
    return pa.table(
        {
            "records": [10, 12],
            "age": pa.array([{"lo": 20, "hi": 30}, {"lo": 30, "hi": None}], ends),
            "seen": pa.array([{"lo": day, "hi": day.replace(year=2022)}, {"lo": None, "hi": day}], days),
        }
    )


PLOTS = {
    "quasi_identifiers": (sets, ["zip + age", "unique people"]),
    "column_sets": (sets, ["60", "10", "age"]),
    "class_sizes": (sizes, ["3–4", "1000+", "people who look the same"]),
    "prediction_curves": (risks, ["distance", "ambiguity", "uncertainty"]),
    "kernel_components": (projections, ["component 1", "component 3"]),
    "risk_utility": (compared, ["noise", "swapped", "a privacy test failed"]),
    "correlations": (correlated, ["0.25", "0.75", "bmi"]),
    "distributions": (shares, ["< 30", "released"]),
    "boxes": (box_rows, ["age", "seen"]),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_shows_what_it_is_given(name: str) -> None:
    make, expected = PLOTS[name]
    figure = getattr(plot, name)(make())
    assert isinstance(figure, Figure)
    assert set(expected) <= set(texts(figure))


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLOTS)
def test_a_relation_is_taken_in_every_form(name: str, con: duckdb.DuckDBPyConnection) -> None:
    rows = PLOTS[name][0]()
    expected = parts(getattr(plot, name)(rows))
    assert parts(getattr(plot, name)(con.from_arrow(rows))) == expected
    assert parts(getattr(plot, name)(rows.combine_chunks().to_batches()[0])) == expected


@pytest.mark.parametrize("name", PLOTS)
def test_what_is_missing_is_said_in_one_sentence(name: str) -> None:
    draw, rows = getattr(plot, name), PLOTS[name][0]()
    with pytest.raises(ValueError, match=rf"^duckanon\.plot\.{name}: .* must .*; got .*\.$"):
        draw(pa.table({"other": [1]}))
    with pytest.raises(ValueError, match=rf"^duckanon\.plot\.{name}: relation must have rows; got none\.$"):
        draw(rows.slice(0, 0))
    with pytest.raises(TypeError, match=rf"^duckanon\.plot\.{name}: relation must be .*; got int\.$"):
        draw(3)


@pytest.mark.thorough
def test_the_functions_return_what_the_plots_take(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE people AS SELECT i % 7 AS age, i % 3 AS ward, i % 90 * 1.5 AS bmi FROM range(400) t(i)")
    plot.quasi_identifiers(con.sql("FROM anon.quasi_identifiers('people', max_size := 2)"))
    plot.column_sets(con.sql("FROM anon.quasi_identifiers('people', max_size := 2)"))
    plot.class_sizes(con.sql("FROM anon.class_sizes('people', ['age', 'ward'])"))
    plot.prediction_curves(con.sql("FROM anon.prediction_risk('people', 'people', ['age', 'bmi'])"))
    plot.kernel_components(con.sql("FROM anon.kernel_components('people', 'people', ['age', 'bmi'], seed := 1)"))
    plot.correlations(con.sql("FROM anon.utility('people', 'people', ['age', 'bmi'])"))
    plot.boxes(con.sql("FROM anon.boxes('people', ['age', 'bmi'], 20)"))


def test_the_curve_is_that_of_the_paper() -> None:
    """Figure 1: D/(e n) up to n values, e^(-n/D) above; both are 1/e at n."""
    figure = plot.quasi_identifiers(sets())
    curve = next(line for line in figure.axes[0].lines if len(line.get_xdata()) > 100)
    for place, height in zip(*(np.asarray(data, float) for data in curve.get_data()), strict=True):
        assert height == pytest.approx(place / math.e if place <= 1 else math.exp(-1 / place))


def test_bars_are_shares_of_rows() -> None:
    bars = plot.class_sizes(sizes()).axes[0].patches
    heights = [bar.get_height() for bar in bars]
    assert heights == pytest.approx([0.1, 0, 0.2, 0, 0.3, 0, 0, 0, 0.4])


def test_several_tables_are_told_apart_by_name() -> None:
    shown = texts(plot.prediction_curves({"mine": risks(), "reference": risks(0.1)}))
    assert {"mine", "reference"} <= set(shown)


def test_curves_do_not_end_at_a_single_person() -> None:
    values = np.append(np.linspace(0.2, 0.5, 400), [0.0, 9.0])
    _, shown = privacy.quantiles(values)
    assert shown.min() > 0.1
    assert shown.max() < 1


def test_no_place_of_fewer_than_k_originals_is_drawn() -> None:
    """The version that draws all bins, or ends axes at extremes, shows the one who is far away."""
    crowd = np.random.default_rng(2).normal(size=500)
    values = np.append(crowd, [40.0, 41.0])
    edges = statistics.round_edges(values, 10)
    assert edges.max() < 5
    shares = statistics.shares_of_bins(values, edges, 10)
    counts = np.histogram(values, edges)[0]
    assert (shares[counts < 10] == 0).all()
    assert shares.max() > 0
    assert np.allclose(shares, np.round(shares, 2))


def test_names_are_no_markup_and_no_formulas() -> None:
    rows = compared().set_column(0, "release", pa.array([HOSTILE, HOSTILE, "$\\frac$", "$\\frac$"]))
    drawn = plot.svg(plot.risk_utility(rows), HOSTILE.replace("\x00", ""), HOSTILE.replace("\x00", ""))
    assert "<script" not in drawn
    assert "$\\frac$" in texts(plot.risk_utility(rows))


@pytest.mark.thorough
def test_a_picture_is_the_same_each_time_and_leaves_the_settings_alone() -> None:
    before = dict(mpl.rcParams)
    first, second = (plot.svg(plot.kernel_components(projections()), "t", "d") for _ in range(2))
    assert first == second
    assert dict(mpl.rcParams) == before
    assert "date" not in first.lower()


def test_pictures_of_a_page_do_not_share_names_and_follow_its_colours() -> None:
    drawn = [plot.svg(plot.class_sizes(sizes()), f"title {number}", "d") for number in range(2)]
    names = [re.findall(r' id="([^"]+)"', one) for one in drawn]
    assert not set(names[0]) & set(names[1])
    assert all(len(set(one)) == len(one) for one in names)
    for one, its_names in zip(drawn, names, strict=True):
        assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', one)) <= set(its_names)
        assert style.INK not in one
        assert "currentColor" in one
        assert 'role="img"' in one


@pytest.mark.thorough
def test_pictures_are_drawn_in_threads() -> None:
    expected = plot.svg(plot.class_sizes(sizes()), "t", "d")
    drawn: list[str] = []
    threads = [
        threading.Thread(target=lambda: drawn.append(plot.svg(plot.class_sizes(sizes()), "t", "d"))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert drawn == [expected] * 3


@pytest.mark.parametrize("parameter", ["risk", "loss"])
def test_an_unknown_measure_is_refused(parameter: str) -> None:
    with pytest.raises(ValueError, match=f"{parameter} must be one of correlation, distance; got beauty"):
        plot.risk_utility(compared(), **{parameter: "beauty"})


def test_boxes_must_be_two_columns_of_intervals() -> None:
    with pytest.raises(ValueError, match=r"two columns of intervals \(there are: age, seen\); got age, records"):
        plot.boxes(box_rows(), ["age", "records"])
