"""Models trained on a release that predict the original, and models that tell the two tables apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.model_selection import StratifiedKFold

from duckanon._core.common.arguments import checked
from duckanon._core.common.arrays import Array, Floats, Ints
from duckanon._core.common.declare import report
from duckanon._core.common.rules import Number, Whole
from duckanon._core.encoding.measurement_encoding import coded
from duckanon._core.encoding.pairs import CategoryPair, NumberPair, Pair, paired, stacked
from duckanon._measure.utility import learners
from duckanon._measure.utility.declared import CLASSIFIER_UTILITY, DETECTABILITY

_MOST_CLASSES = 50  # boosting grows a tree for each class in every round
_FEWEST_TRAINED = 10  # rows without which a model learns nothing


@checked(test_fraction=Number(0, 1), max_rows=Whole(_FEWEST_TRAINED))
def classifier_utility(
    original: pa.Table,
    released: pa.Table,
    target: str,
    *,
    random: np.random.Generator,
    holdout: pa.Table | None = None,
    special: Any = "off",
    categories: Sequence[str] | None = (),
    test_fraction: float = 0.3,
    max_rows: int = 50_000,
) -> pa.Table:
    """Predict a column of held-out originals by models trained on the release and on other originals.

    Without `holdout`, originals that the release was not made from, a random part of the original is held out. It is
    not seen by the model trained on originals, but the release may have been made from it too. That favours the
    release: one that copies its source beats an honest one. Set rows aside before the release is made for a fair
    comparison.

    All other columns predict the `target`. Categories, and numbers of which only two differ, are classes; other numbers
    and dates are regressed. NULL is one more class; rows whose number is NULL are left out. `special` values and
    `categories` among numbers are those of `measurement_encoding.coded`. Both models are trained on equally many rows,
    at most `max_rows`.

    Returns:
        Rows for boosted trees, a linear (or logistic) model, and a constant one that knows the target's distribution
        only: ``auc`` (two classes) and ``accuracy``, or ``r2``. The difference is released minus original.
    """
    if target not in original.column_names:
        raise ValueError(f'the original table has no column "{target}"; name the column to predict.')
    if original.num_columns < 2:
        raise ValueError(f'there is no column beside "{target}" to predict it by; name more columns.')
    known = original if holdout is None else stacked(original, holdout)
    pairs = coded(paired(known, released), known.schema, special, categories)
    aim, usable, released_usable = _target(next(column for column in pairs if column.name == target))
    inside, outside = usable[usable < original.num_rows], usable[usable >= original.num_rows]
    if holdout is None:
        order = random.permutation(inside)
        cut = round(test_fraction * len(order))
        inside, outside = order[cut:], order[:cut]
    size = min(len(inside), len(released_usable), int(max_rows))
    if size < _FEWEST_TRAINED or len(outside) < 2:
        raise ValueError(
            f'there must be at least {_FEWEST_TRAINED} rows to train on and 2 to test on in which "{target}" is known; '
            f"got {size} and {len(outside)}."
        )
    train, test = random.permutation(inside)[:size], random.permutation(outside)[: int(max_rows)]
    released_train = random.permutation(released_usable)[:size]
    columns = [column for column in pairs if column.name != target]
    original_features, released_features = learners.features(columns, np.concatenate([train, test]), released_train)
    train_features = original_features.take(np.arange(size))
    test_features = original_features.take(np.arange(size, size + len(test)))
    truth = aim.original[test]
    rows = []
    for model in learners.MODELS:
        before = _measures(model, aim, train_features, aim.original[train], test_features, truth, random)
        after = _measures(model, aim, released_features, aim.released[released_train], test_features, truth, random)
        rows += [(model, name, value, after[name], after[name] - value) for name, value in before.items()]
    names = ("model", "measure", "trained_on_original", "trained_on_released", "difference")
    measured = dict(zip(names, zip(*rows, strict=True), strict=True))
    sizes = {"train_rows": [size] * len(rows), "test_rows": [len(test)] * len(rows)}
    return report({**measured, **sizes}, CLASSIFIER_UTILITY.schema)


def _target(aim: Pair) -> tuple[Pair, Ints, Ints]:
    """Return what to predict, as classes or numbers, and the rows of both tables that have it."""
    if isinstance(aim, NumberPair):
        usable, released_usable = (np.flatnonzero(~np.isnan(values)) for values in (aim.original, aim.released))
        least = np.nanmin(aim.original) if len(usable) else np.nan
        both = np.concatenate([aim.original[usable], aim.released[released_usable]])
        others = both[both != least]
        if len(others) and (others == others[0]).all():
            texts: list[str | None] = [f"{value:g}" for value in sorted((least, others[0]))]
            top = max(least, others[0])
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
    train: learners.Features,
    target: Array,
    test: learners.Features,
    truth: Array,
    random: np.random.Generator,
) -> dict[str, float]:
    """Train a model and measure how well it predicts the truth."""
    if isinstance(aim, CategoryPair):
        predicted = learners.probabilities(model, train, target, test, len(aim.texts), random)
        measures = {"accuracy": float((predicted.argmax(axis=1) == truth).mean())}
        return {"auc": learners.area(truth, predicted[:, 1]), **measures} if len(aim.texts) == 2 else measures
    spread = float(((truth - truth.mean()) ** 2).sum())
    if not spread:  # nothing to explain
        return {"r2": np.nan}
    return {"r2": 1 - float(((truth - learners.predictions(model, train, target, test, random)) ** 2).sum()) / spread}


@checked(folds=Whole(2))
def detectability(
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
    known = original if holdout is None else stacked(original, holdout)
    pairs = coded(paired(known, released), known.schema, "off", categories)
    least = min(people.num_rows, released.num_rows)
    if least < 2 * folds or max_rows < 2 * folds:
        raise ValueError(
            f"both tables and max_rows must have at least {2 * folds} rows for {folds} folds; "
            f"got {people.num_rows}, {released.num_rows} and {max_rows}."
        )
    size = min(least, max_rows)
    order = known.num_rows - people.num_rows + random.permutation(people.num_rows)
    first, second = learners.features(pairs, order[:size], random.permutation(released.num_rows)[:size])
    sides = [learners.with_decimals(pairs, side.trees) for side in (first, second)]
    rows = [("released", *_told_apart(sides[0], sides[1], first.categorical, folds, random), size)]
    if holdout is None:
        half = min(size, original.num_rows // 2)
        compared = order[: 2 * half]
    else:
        half = min(original.num_rows, len(order), max_rows)
        compared = np.concatenate([order[:half], random.permutation(original.num_rows)[:half]])
    if halves and half >= folds:
        whole, _ = learners.features(pairs, compared, np.arange(1))
        rest = learners.with_decimals(pairs, whole.trees)
        rows.append(("reference", *_told_apart(rest[:half], rest[half:], whole.categorical, folds, random), half))
    names = ("comparison", "auc", "standard_error", "rows_each")
    return report(dict(zip(names, zip(*rows, strict=True), strict=True)), DETECTABILITY.schema)


def _told_apart(
    first: Floats, second: Floats, categorical: list[int], folds: int, random: np.random.Generator
) -> tuple[float, float]:
    """Return the mean area under the ROC curve over the folds, and its standard error."""
    rows = np.concatenate([first, second])
    label = np.repeat(np.array([0, 1]), [len(first), len(second)])
    everything = learners.Features(rows, np.empty((len(rows), 0)), categorical)
    areas = []
    parts = StratifiedKFold(folds, shuffle=True, random_state=int(random.integers(2**31)))
    for train, test in parts.split(rows, label):
        predicted = learners.probabilities(
            "boosted_trees", everything.take(train), label[train], everything.take(test), 2, random
        )
        areas.append(learners.area(label[test], predicted[:, 1]))
    return float(np.mean(areas)), float(np.std(areas, ddof=1) / np.sqrt(folds))
