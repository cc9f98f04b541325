"""Wide choices: a few coordinates in place of an indicator each, as many of each value as there were."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckanon import spectral
from duckanon._core.encoding.column_codecs import (
    ChoiceCoordinates,
    apportion,
    find_coordinates,
    find_correspondences,
    locate_choices,
    sum_features,
)
from duckanon._core.encoding.fit import fit_columns
from duckanon._core.encoding.formulas import _Choices, _find_commonest, _LookupSource


def districts(rows: int, count: int, seed: int) -> pa.Table:
    """People of districts that differ in wages, and beside them what has nothing to do with the districts."""
    random = np.random.default_rng(seed)
    district = random.choice(count, rows, p=random.dirichlet(np.full(count, 8.0)))
    wage = np.round(np.exp(8 + 0.7 * random.normal(size=count)[district] + random.normal(size=rows)))
    names = np.array([f"d{number:03}" for number in range(count)])
    return pa.table({"district": names[district], "wage": wage, "noise": random.normal(size=rows)})


@given(st.integers(0, 2**32 - 1), st.integers(0, 400), st.integers(1, 60), st.integers(1, 4))
def test_every_choice_is_made_as_often_as_it_is_wanted(seed: int, rows: int, choices: int, width: int) -> None:
    """Exactly, whatever the coordinates are, ties and choices of nobody included."""
    random = np.random.default_rng(seed)
    counts = random.integers(0, 30, choices)
    counts[0] += 1
    places = ChoiceCoordinates(random.integers(-2, 3, (choices, width)).astype(np.float32), counts)
    wanted = apportion(counts, rows)
    assert wanted.sum() == rows
    assert (np.abs(wanted - rows * counts / counts.sum()) < 1).all()
    scores = random.integers(-2, 3, (rows, width)).astype(np.float32)
    assert np.bincount(places.assign_choices(scores, wanted), minlength=choices).tolist() == wanted.tolist()


@given(st.integers(0, 2**32 - 1), st.integers(1, 80))
def test_on_a_line_choices_are_made_by_rank(seed: int, choices: int) -> None:
    """With one coordinate the nearest rows of each choice are those of the same rank: brute force sorts both."""
    random = np.random.default_rng(seed)
    wanted = random.integers(1, 9, choices)
    line = random.permutation(choices).astype(np.float32)
    scores = random.normal(size=(int(wanted.sum()), 1)).astype(np.float32)
    chosen = ChoiceCoordinates(line[:, None], wanted).assign_choices(scores, wanted)
    order = np.argsort(line)
    assert chosen[np.argsort(scores[:, 0])].tolist() == np.repeat(order, wanted[order]).tolist()


@given(st.integers(0, 2**32 - 1))
def test_coordinates_tell_the_means_of_the_other_features(seed: int) -> None:
    """As many coordinates as features lose nothing: means follow from them, and sums in blocks are sums of all."""
    random = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(12), random.integers(0, 12, 300)])
    features = random.normal(size=(312, 3)) + random.normal(size=(12, 3))[codes]
    sums = sum_features([codes], [12], np.array_split(features, 5))[0]
    centred = features - features.mean(axis=0)
    expected = np.array([centred[codes == code].sum(axis=0) for code in range(12)])
    np.testing.assert_allclose(sums, expected, atol=1e-9)
    counts = np.bincount(codes).astype(np.float64)
    output = find_coordinates(counts, sums)
    assert abs(np.average(output, axis=0, weights=counts)).max() < 1e-5
    assert np.average(output[:, 0] ** 2, weights=counts) == pytest.approx(1, abs=1e-4)
    means = expected / counts[:, None]
    fitted = output @ np.linalg.lstsq(output, means, rcond=None)[0]
    np.testing.assert_allclose(fitted, means, atol=1e-4)


def test_two_wide_choices_alone_are_placed_by_each_other() -> None:
    """Neighbours in one are neighbours in the other; where nothing is known, the order of the values is taken."""
    random = np.random.default_rng(0)
    home = random.integers(0, 60, 8000)
    work = (home + random.integers(-6, 7, 8000)) % 60
    places = locate_choices([home, work], [60, 60], [np.zeros((60, 0))] * 2)
    assert places[0].coordinates.shape[1] > 1
    alone = locate_choices([home], [60], [np.zeros((60, 0))])[0]
    assert alone.coordinates.shape == (60, 1)
    assert (np.diff(alone.coordinates[:, 0]) > 0).all()


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["svd_swap", "pica"])
def test_swaps_keep_the_shares_and_means_of_many_categories(method: str) -> None:
    """Of 120 districts: an indicator each lost 7 % of the shares and two thirds of the relation."""
    table = districts(5000, 120, 3)
    options = {"seed": 1, "checks": "off", **({"cluster_size": 400, "basis": "pca"} if method == "pica" else {})}
    output = getattr(spectral, method)(table, **options).read_all()
    assert output.schema == table.schema
    counts = [_counts(entry) for entry in (table, output)]
    merged = sum(count for count in counts[0].values() if count < 10)
    apart = sum(abs(counts[0].get(name, 0) - counts[1].get(name, 0)) for name in {*counts[0], *counts[1]})
    assert apart / 2 <= merged + 0.005 * 5000
    common = [name for name, count in counts[0].items() if count >= 40 and name in counts[1]]
    means = [[_mean_wage(entry, name) for name in common] for entry in (table, output)]
    assert np.corrcoef(means)[0, 1] >= 0.85


def _counts(table: pa.Table) -> dict[str, int]:
    return {entry["values"]: entry["counts"] for entry in table["district"].value_counts().to_pylist()}


def _mean_wage(table: pa.Table, name: str) -> float:
    is_there = np.array(table["district"].to_pylist()) == name
    return float(np.log(table["wage"].to_numpy()[is_there]).mean())


@pytest.mark.thorough
def test_hundreds_of_categories_take_the_time_of_a_few_numbers() -> None:
    """20,000 people of 900 districts: with an indicator each, svd_swap took two minutes."""
    table = districts(20_000, 900, 4)
    started = time.process_time()
    assert spectral.svd_swap(table, seed=1).read_all().num_rows == 20_000
    assert time.process_time() - started < 20


def test_as_in_the_thesis_every_category_is_a_column() -> None:
    """Nothing is placed where the settings are those of the thesis."""
    table = districts(2000, 60, 5)
    assert fit_columns(table)[0].width == 62


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(2, 900))
def test_the_commonest_choice_is_that_of_a_whole_table(seed: int, values: int, choices: int) -> None:
    """Pairs that occur are counted as a table of all pairs would be, which 900 districts make too large."""
    random = np.random.default_rng(seed)
    source = _LookupSource(0, random.integers(0, values, 50), values, None)
    column = _Choices(np.minimum(random.integers(0, choices, 50), random.integers(0, choices, 50)), choices)
    table = np.zeros((values, choices), int)
    np.add.at(table, (source.codes, column.codes), 1)
    commonest, held = _find_commonest(source, column)
    assert held.tolist() == table.max(axis=1).tolist()
    assert commonest.tolist() == np.where(table.any(axis=1), table.argmax(axis=1), -1).tolist()


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(2, 40))
def test_correspondences_are_those_of_all_singular_vectors(seed: int, ones: int, others: int) -> None:
    """Products of coordinates are the table's deviations from independence, by numpy's whole decomposition."""
    random = np.random.default_rng(seed)
    cells = random.poisson(random.gamma(0.2, 20, (ones, others))) + 1.0
    places = find_correspondences(cells, 10**9)
    rows = cells.sum()
    scale = np.sqrt(np.outer(cells.sum(axis=1), cells.sum(axis=0))) / rows
    left, spread, right = np.linalg.svd(cells / rows / scale - scale)
    kept = min(8, int((spread > 1e-3).sum()))
    if kept == 0:
        return
    assert places is not None
    results = places[0][:, :kept] / spread[:kept] @ places[1][:, :kept].T * scale
    if kept < len(spread) and spread[kept - 1] > 1.001 * spread[kept]:  # else it is arbitrary which is the eighth
        np.testing.assert_allclose(results, (left[:, :kept] * spread[:kept]) @ right[:kept], atol=1e-5)
