"""Boosted trees and linear models on any columns, whatever classes a training sample happens to have.

Trees grow on one thread: on a busy machine the others spend more time waiting for each other than growing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score

from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.threads import one_thread
from duckanon._core.encoding.pairs import CategoryPair, Pair, indicators

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
    plain = [(values[first], released[second]) for column in columns for _, values, released in indicators(column)]
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
    with one_thread():
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
    with one_thread():
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
