"""Models trained on a release that predict the original, and models that tell the two tables apart.

Boosted trees and linear models on any columns, whatever classes a training sample happens to have.

Trees grow on one thread: on a busy machine the others spend more time waiting for each other than growing.

The measures by classifiers, as SQL calls them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from duckanon._core.common.arguments import check_arguments, make_generator
from duckanon._core.common.arrays import Array, Floats, Ints
from duckanon._core.common.declare import report_columns
from duckanon._core.common.resources import use_one_thread
from duckanon._core.common.rules import Number, Whole
from duckanon._core.encoding.measurement_encoding import code_pairs
from duckanon._core.encoding.pairs import CategoryPair, NumberPair, Pair, list_indicators, pair_tables, stack_tables
from duckanon._measure.coarse.coarse_tables import read_tables
from duckanon._measure.coarse.label_meanings import HierarchyRows
from duckanon._measure.utility.declared import CLASSIFIER_UTILITY, DETECTABILITY

MODELS = ("boosted_trees", "linear", "constant")
_MOST_CODES = 254  # the trees' limit is 255; the last code is for all other categories
_RARE = 253
_MOST_DECIMALS = 8  # numbers with more are taken to be unrounded


@dataclass(frozen=True)
class Features:
    """The same rows for trees (categories as codes) and linear models (indicators)."""

    trees: Floats
    linear: Floats
    categorical: list[int]

    def take(self, rows: Ints) -> Features:
        """Return the given rows."""
        return Features(self.trees[rows], self.linear[rows], self.categorical)


def features(columns: Sequence[Pair], first: Ints, second: Ints) -> tuple[Features, Features]:
    """Turn the given rows of the original and of the release into features.

    For trees NULL stays NULL among numbers; for linear models columns are standardised by the original rows.
    """
    trees = [_tree_column(column, first, second) for column in columns]
    # Of whole columns, so that both samples have the same indicators.
    plain = [(values[first], released[second]) for column in columns for _, values, released in list_indicators(column)]
    linear = [np.column_stack([pair[side] for pair in plain]) for side in (0, 1)]
    mean, spread = linear[0].mean(axis=0), linear[0].std(axis=0)
    spread[spread == 0] = 1.0
    linear = [np.clip((side - mean) / spread, -1e6, 1e6) for side in linear]
    categorical = [index for index, column in enumerate(columns) if isinstance(column, CategoryPair)]
    tall = [np.column_stack([pair[side] for pair in trees]) for side in (0, 1)]
    return Features(tall[0], linear[0], categorical), Features(tall[1], linear[1], categorical)


def with_decimals(columns: Sequence[Pair], rows: Floats) -> Floats:
    """Add to the trees' features how many decimals each number has: trees see ranges, but not digits."""
    values = rows[:, [index for index, column in enumerate(columns) if not isinstance(column, CategoryPair)]]
    decimals = np.full(values.shape, float(_MOST_DECIMALS))
    near = 1e-12 * np.maximum(np.abs(values), 1e-3)
    for digits in range(_MOST_DECIMALS - 1, -1, -1):
        decimals[np.abs(np.round(values, digits) - values) <= near] = digits
    return np.hstack([rows, decimals])


def _tree_column(column: Pair, first: Ints, second: Ints) -> tuple[Floats, Floats]:
    if not isinstance(column, CategoryPair):
        return column.original[first], column.released[second]
    count = len(column.texts)
    codes = np.arange(count)
    if count > _MOST_CODES:
        together = np.bincount(column.original, minlength=count) + np.bincount(column.released, minlength=count)
        codes = np.minimum(np.argsort(np.argsort(-together, kind="stable"), kind="stable"), _RARE)
    return codes[column.original[first]].astype(np.float64), codes[column.released[second]].astype(np.float64)


def probabilities(
    model: str, train: Features, target: Ints, test: Features, classes: int, random: np.random.Generator
) -> Floats:
    """Train a classifier and return the probabilities of all classes for the test rows.

    A class that the training rows do not have gets the probability 0; where they have one class only, it is certain.
    """
    predicted = np.zeros((len(test.trees), classes))
    present, counts = np.unique(target, return_counts=True)
    if len(present) == 1 or model == "constant":
        predicted[:, present] = counts / counts.sum()
        return predicted
    if model == "linear":
        fitted = LogisticRegression(max_iter=1000).fit(train.linear, target)
        predicted[:, fitted.classes_] = fitted.predict_proba(test.linear)
        return predicted
    grown = HistGradientBoostingClassifier(
        categorical_features=train.categorical or None, early_stopping=False, random_state=int(random.integers(2**31))
    )
    known, asked = _without_unknown(train.trees, test.trees)
    with use_one_thread():
        grown.fit(known, target)
        predicted[:, grown.classes_] = grown.predict_proba(asked)
    return predicted


def predictions(model: str, train: Features, target: Floats, test: Features, random: np.random.Generator) -> Floats:
    """Train a regression and return its predictions for the test rows."""
    if model == "constant" or np.ptp(target) == 0:
        return np.full(len(test.trees), target.mean())
    if model == "linear":
        return np.asarray(Ridge().fit(train.linear, target).predict(test.linear))
    grown = HistGradientBoostingRegressor(
        categorical_features=train.categorical or None, early_stopping=False, random_state=int(random.integers(2**31))
    )
    known, asked = _without_unknown(train.trees, test.trees)
    with use_one_thread():
        return np.asarray(grown.fit(known, target).predict(asked))


def _without_unknown(train: Floats, test: Floats) -> tuple[Floats, Floats]:
    """Make columns constant of which the training rows know no number: trees learn nothing from them, and refuse them.

    Examples:
        >>> [rows.tolist() for rows in _without_unknown(np.array([[1.0, np.nan]]), np.array([[2.0, 5.0]]))]
        [[[1.0, 0.0]], [[2.0, 0.0]]]
    """
    is_unknown = np.isnan(train).all(axis=0)
    if not is_unknown.any():
        return train, test
    return np.where(is_unknown, 0.0, train), np.where(is_unknown, 0.0, test)


def area(positive: Ints, score: Floats) -> float:
    """Return the area under the ROC curve, NaN where the test rows are all of one class."""
    return float(roc_auc_score(positive, score)) if 0 < positive.sum() < len(positive) else np.nan


_MOST_CLASSES = 50  # boosting grows a tree for each class in every round
_MOST_ROWS = 50_000  # that models are trained and tested on
_FEWEST_TRAINED = 10  # rows without which a model learns nothing


@check_arguments(test_fraction=Number(0, 1))
def compare_classifiers(
    original: pa.Table,
    released: pa.Table,
    target: str,
    *,
    random: np.random.Generator,
    holdout: pa.Table | None = None,
    special: Any = "off",
    categories: Sequence[str] | None = (),
    test_fraction: float = 0.3,
) -> pa.Table:
    """Predict a column of held-out originals by models trained on the release and on other originals.

    Without `holdout`, originals that the release was not made from, a random part of the original is held out. It is
    not seen by the model trained on originals, but the release may have been made from it too. That favours the
    release: one that copies its source beats an honest one. Set rows aside before the release is made for a fair
    comparison.

    All other columns predict the `target`. Categories, and numbers of which only two differ, are classes; other numbers
    and dates are regressed. NULL is one more class; rows whose number is NULL are left out. `special` values and
    `categories` among numbers are those of `measurement_encoding.code_pairs`. Both models are trained on equally many
    rows, at most 50,000.

    Returns:
        Rows for boosted trees, a linear (or logistic) model, and a constant one that knows the target's distribution
        only: ``auc`` (two classes) and ``accuracy``, or ``r2``. The difference is released minus original.
    """
    if target not in original.column_names:
        raise ValueError(f'the original table has no column "{target}"; name the column to predict.')
    if original.num_columns < 2:
        raise ValueError(f'there is no column beside "{target}" to predict it by; name more columns.')
    known = original if holdout is None else stack_tables(original, holdout)
    pairs = code_pairs(pair_tables(known, released), known.schema, special, categories)
    aim, usable, released_usable = _target(next(column for column in pairs if column.name == target))
    inside, outside = usable[usable < original.num_rows], usable[usable >= original.num_rows]
    if holdout is None:
        order = random.permutation(inside)
        cut = round(test_fraction * len(order))
        inside, outside = order[cut:], order[:cut]
    size = min(len(inside), len(released_usable), _MOST_ROWS)
    if size < _FEWEST_TRAINED or len(outside) < 2:
        raise ValueError(
            f'there must be at least {_FEWEST_TRAINED} rows to train on and 2 to test on in which "{target}" is known; '
            f"got {size} and {len(outside)}."
        )
    train, test = random.permutation(inside)[:size], random.permutation(outside)[:_MOST_ROWS]
    released_train = random.permutation(released_usable)[:size]
    columns = [column for column in pairs if column.name != target]
    original_features, released_features = features(columns, np.concatenate([train, test]), released_train)
    train_features = original_features.take(np.arange(size))
    test_features = original_features.take(np.arange(size, size + len(test)))
    truth = aim.original[test]
    rows = []
    for model in MODELS:
        before = _measures(model, aim, train_features, aim.original[train], test_features, truth, random)
        after = _measures(model, aim, released_features, aim.released[released_train], test_features, truth, random)
        rows += [(model, name, value, after[name], after[name] - value) for name, value in before.items()]
    names = ("model", "measure", "trained_on_original", "trained_on_released", "difference")
    measured = dict(zip(names, zip(*rows, strict=True), strict=True))
    sizes = {"train_rows": [size] * len(rows), "test_rows": [len(test)] * len(rows)}
    return report_columns({**measured, **sizes}, CLASSIFIER_UTILITY.schema)


def _target(aim: Pair) -> tuple[Pair, Ints, Ints]:
    """Return what to predict, as classes or numbers, and the rows of both tables that have it."""
    if isinstance(aim, NumberPair):
        usable, released_usable = (np.flatnonzero(~np.isnan(values)) for values in (aim.original, aim.released))
        least = np.nanmin(aim.original) if len(usable) else np.nan
        both = np.concatenate([aim.original[usable], aim.released[released_usable]])
        rest = both[both != least]
        if len(rest) and (rest == rest[0]).all():
            texts: list[str | None] = [f"{value:g}" for value in sorted((least, rest[0]))]
            top = max(least, rest[0])
            codes = [(values == top).astype(np.int64) for values in (aim.original, aim.released)]
            return CategoryPair(aim.name, codes[0], codes[1], texts), usable, released_usable
        return aim, usable, released_usable
    if len(aim.texts) > _MOST_CLASSES:
        raise ValueError(
            f'column "{aim.name}" has {len(aim.texts)} classes, of which at most {_MOST_CLASSES} can be predicted; '
            "recode it first."
        )
    return aim, np.arange(len(aim.original)), np.arange(len(aim.released))


def _measures(
    model: str,
    aim: Pair,
    train: Features,
    target: Array,
    test: Features,
    truth: Array,
    random: np.random.Generator,
) -> dict[str, float]:
    """Train a model and measure how well it predicts the truth."""
    if isinstance(aim, CategoryPair):
        predicted = probabilities(model, train, target, test, len(aim.texts), random)
        measures = {"accuracy": float((predicted.argmax(axis=1) == truth).mean())}
        return {"auc": area(truth, predicted[:, 1]), **measures} if len(aim.texts) == 2 else measures
    spread = float(((truth - truth.mean()) ** 2).sum())
    if not spread:  # nothing to explain
        return {"r2": np.nan}
    return {"r2": 1 - float(((truth - predictions(model, train, target, test, random)) ** 2).sum()) / spread}


@check_arguments(folds=Whole(2))
def detect_released(
    original: pa.Table,
    released: pa.Table,
    *,
    random: np.random.Generator,
    holdout: pa.Table | None = None,
    categories: Sequence[str] | None = (),
    max_rows: int = 20_000,
    folds: int = 5,
    halves: bool = True,
) -> pa.Table:
    """Measure how well boosted trees tell released rows from people's.

    .5 means that nothing tells them apart. The trees also see how many decimals each number has: an unrounded release
    is told from its rounded original every time. Trees find special values by themselves.

    Without `holdout`, people whom the release was not made from, released rows are compared with the original's. Then
    a release that holds people's rows or values comes out too low, even below .5: a tree that has learnt one of two
    equal rows is wrong about the other. Other people have no copies in the release.

    Returns:
        The mean area under the ROC curve over the folds, its standard error, and how many rows of each table were
        used; ``released`` against other people (without them: the original), and as ``reference``, which is about .5,
        the original against other people (one random half of the original against the other).
    """
    people = original if holdout is None else holdout
    known = original if holdout is None else stack_tables(original, holdout)
    pairs = code_pairs(pair_tables(known, released), known.schema, "off", categories)
    least = min(people.num_rows, released.num_rows)
    if least < 2 * folds or max_rows < 2 * folds:
        raise ValueError(
            f"both tables and max_rows must have at least {2 * folds} rows for {folds} folds; "
            f"got {people.num_rows}, {released.num_rows} and {max_rows}."
        )
    size = min(least, max_rows)
    order = known.num_rows - people.num_rows + random.permutation(people.num_rows)
    first, second = features(pairs, order[:size], random.permutation(released.num_rows)[:size])
    sides = [with_decimals(pairs, side.trees) for side in (first, second)]
    rows = [("released", *_measure_auc(sides[0], sides[1], first.categorical, folds, random), size)]
    if holdout is None:
        half = min(size, original.num_rows // 2)
        compared = order[: 2 * half]
    else:
        half = min(original.num_rows, len(order), max_rows)
        compared = np.concatenate([order[:half], random.permutation(original.num_rows)[:half]])
    if halves and half >= folds:
        whole, _ = features(pairs, compared, np.arange(1))
        rest = with_decimals(pairs, whole.trees)
        rows.append(("reference", *_measure_auc(rest[:half], rest[half:], whole.categorical, folds, random), half))
    names = ("comparison", "auc", "standard_error", "rows_each")
    return report_columns(dict(zip(names, zip(*rows, strict=True), strict=True)), DETECTABILITY.schema)


def _measure_auc(
    first: Floats, second: Floats, categorical: list[int], folds: int, random: np.random.Generator
) -> tuple[float, float]:
    """Return the mean area under the ROC curve over the folds, and its standard error."""
    rows = np.concatenate([first, second])
    label = np.repeat(np.array([0, 1]), [len(first), len(second)])
    everything = Features(rows, np.empty((len(rows), 0)), categorical)
    areas = []
    parts = StratifiedKFold(folds, shuffle=True, random_state=int(random.integers(2**31)))
    for train, test in parts.split(rows, label):
        predicted = probabilities(
            "boosted_trees", everything.take(train), label[train], everything.take(test), 2, random
        )
        areas.append(area(label[test], predicted[:, 1]))
    return float(np.mean(areas)), float(np.std(areas, ddof=1) / np.sqrt(folds))


def classifier_utility(
    original: pa.Table | None,
    released: pa.Table | None,
    holdout: pa.Table | None,
    *,
    hierarchies: HierarchyRows,
    target: str,
    special: Any,
    categories: list[str] | None,
    seed: int | None,
) -> pa.Table:
    """Compare models trained on the release with models trained on originals."""
    random = make_generator(seed)
    read = read_tables(original, released, hierarchies, holdout=holdout)
    name = next((name for name in read.original.column_names if name.lower() == str(target).lower()), str(target))
    return compare_classifiers(
        read.original,
        read.draw_values(random),
        name,
        random=random,
        holdout=read.outsiders[0],
        special=special,
        categories=categories,
    )


def detectability(
    original: pa.Table | None,
    released: pa.Table | None,
    holdout: pa.Table | None,
    *,
    hierarchies: HierarchyRows,
    categories: list[str] | None,
    seed: int | None,
) -> pa.Table:
    """Tell released rows from other people's, or from original ones."""
    random = make_generator(seed)
    read = read_tables(original, released, hierarchies, holdout=holdout)
    return detect_released(
        read.original, read.draw_values(random), random=random, holdout=read.outsiders[0], categories=categories
    )
