"""Sensitivities against finite differences of the statistics themselves."""

import itertools

import numpy as np
import pytest

from duckanon._methods.boxes.shaping import Statistic, measure_sensitivities

NAMES = ("x", "y", "z", "u")


def values_of(statistic: Statistic, data: dict[str, np.ndarray]) -> np.ndarray:
    """The statistic as a textbook has it."""
    chosen = np.array([data[name] for name in statistic.columns])
    covariance = np.atleast_2d(np.cov(chosen, bias=True))
    match statistic.kind:
        case "mean":
            return chosen.mean(axis=1)
        case "variance":
            return covariance[0]
        case "standard_deviation":
            return np.sqrt(covariance[0])
        case "covariance":
            return covariance[0, 1:]
        case "correlation":
            return np.corrcoef(chosen)[0, 1:]
        case _:
            design = np.column_stack([np.ones(chosen.shape[1]), *chosen[1:]])
            return np.linalg.lstsq(design, chosen[0], rcond=None)[0][1:]


def finite_differences(statistic: Statistic, data: dict[str, np.ndarray]) -> np.ndarray:
    """N |dC/dx_i|: values of the statistic by columns by records."""
    size = len(data["x"])
    result = []
    for name, record in itertools.product(NAMES, range(size)):
        ends = []
        for step in (1e-5, -1e-5):
            moved = {key: column.copy() for key, column in data.items()}
            moved[name][record] += step
            ends.append(values_of(statistic, moved))
        result.append(size * abs(ends[0] - ends[1]) / 2e-5)
    return np.array(result).reshape(len(NAMES), size, -1).transpose(2, 0, 1)


def example(size: int = 25) -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    mixed = random.normal(size=(4, 4)) @ random.normal(size=(4, size)) + np.array([[3.0], [-1.0], [0.0], [10.0]])
    return dict(zip(NAMES, mixed, strict=True))


STATISTICS = [
    Statistic("mean", ("y",)),
    Statistic("variance", ("x",), accuracy=0.05),
    Statistic("standard_deviation", ("z",)),
    Statistic("covariance", ("x", "u")),
    Statistic("correlation", ("z", "y")),
    Statistic("regression", ("x", "y")),
    Statistic("regression", ("u", "x", "z", "y"), probability=3),
]


def expected(statistics: list[Statistic], data: dict[str, np.ndarray]) -> np.ndarray:
    total = sum(s.probability for s in statistics)
    result = np.zeros((len(NAMES), len(data["x"])))
    for statistic in statistics:
        sizes = values_of(statistic, data)
        sds = [data[name].std() for name in statistic.columns]
        scale = {
            "mean": sds[0],
            "variance": sds[0] ** 2,
            "standard_deviation": sds[0],
            "covariance": sds[0] * sds[-1],
            "correlation": 1,
        }.get(statistic.kind, sds[0] / np.array(sds[1:]))
        desired = statistic.accuracy * np.maximum(abs(sizes), 0.1 * np.atleast_1d(scale))
        weights = statistic.probability / total / len(sizes) / desired
        result += (weights[:, None, None] * finite_differences(statistic, data)).sum(axis=0)
    return result


@pytest.mark.parametrize("statistics", [[s] for s in STATISTICS] + [STATISTICS], ids=str)
def test_against_finite_differences(statistics):
    data = example()
    got = measure_sensitivities(data, statistics).at(list(data.values()))
    got = np.array([np.broadcast_to(a, 25) for a in got])
    np.testing.assert_allclose(got, expected(statistics, data), rtol=1e-5, atol=1e-5)


def test_the_default_knows_no_units():
    data = example(500)
    got = measure_sensitivities(data)
    changed = measure_sensitivities({name: 100 * column - 7 for name, column in data.items()})
    for a, b, column in zip(got.at([]), changed.at([]), data.values(), strict=True):
        assert isinstance(a, float)
        assert a == pytest.approx(100 * b)
        assert a * column.std() == pytest.approx(2.5)


def test_floor_for_a_mean_near_zero():
    x = np.array([-1.0, 1.0] * 50)
    (a,) = measure_sensitivities({"x": x}, [Statistic("mean", ("x",))]).at([x])
    assert a == pytest.approx(1 / (0.1 * 0.1))


def test_constant_columns():
    data = {"x": np.full(9, 0.1), "y": np.arange(9.0)}
    for statistics in (
        None,
        [Statistic("mean", ("x",)), Statistic("standard_deviation", ("x",)), Statistic("mean", ("y",))],
    ):
        a, _ = measure_sensitivities(data, statistics).at(list(data.values()))
        assert np.max(a) == 0


@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        (
            [Statistic("median", ("x",))],
            "statistic must be one of 'mean', 'variance', 'standard_deviation', 'covariance', 'correlation', "
            "'regression'; got 'median'.",
        ),
        ([Statistic("mean", ("q",))], "columns of a statistic must be among x, y, z; got 'q'."),
        ([Statistic("covariance", ("x",))], "a covariance must have 2 columns; got 1."),
        ([Statistic("regression", ("x",))], "a regression must have at least 2 columns; got 1."),
        (
            [Statistic("covariance", ("x", "x"))],
            "columns of a statistic must be different ones; got the covariance of x, x.",
        ),
        ([Statistic("mean", ("x",), -1)], "probability must be a finite number of at least 0; got -1."),
        (
            [Statistic("mean", ("x",), accuracy=0)],
            "accuracy must be a finite number above 0; got 0.",
        ),
        ([], "statistics must have at least one with a probability above 0; got none."),
        (
            [Statistic("correlation", ("x", "z"))],
            "statistics must exist for the data; the correlation of x, z does not, as columns are constant or depend "
            "on each other.",
        ),
        (
            [Statistic("regression", ("z", "x", "y"))],
            "statistics must exist for the data; the regression of z, x, y does not, as columns are constant or depend "
            "on each other.",
        ),
    ],
)
def test_wrong_input(statistics, message):
    x = np.arange(10.0)
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole message is compared
        measure_sensitivities({"x": x, "y": 2 * x, "z": np.ones(10)}, statistics)
    assert str(raised.value) == message
