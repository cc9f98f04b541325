"""The matching attack: whether the released row nearest to a record comes from it, and whether that shows."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckanon._core.common.arguments import check_by
from duckanon._core.common.arrays import Floats, Ints, sql_type
from duckanon._core.common.declare import report_rows
from duckanon._core.common.row_keys import find_distinct_rows
from duckanon._core.privacy import neighbours
from duckanon._core.privacy.prediction import measure_neighbours
from duckanon._measure.attacks.declared import MATCHING_ATTACK

Keys: TypeAlias = pa.Array | pa.ChunkedArray | None  # of each row of a table; None: the row's number


@check_by(MATCHING_ATTACK)
def matching_attack(
    original: Floats,
    released: Floats,
    keys_original: Keys = None,
    keys_released: Keys = None,
    k: int = 5,
) -> pa.Table:
    """Match every original record with its nearest released row, and count how often that is its own image.

    Thesis, Section 4.2, Figure 4-4; the measures are those of Section 3.1, see `prediction.measure_neighbours`. A match
    that is right with probability p, because of ties, enters the AUC as p of a right and 1 - p of a wrong one, and is
    not compared with itself.

    The matrices are encoded alike. Rows with the same key belong together: a key occurs once in the original, any
    number of times in the release; NULL there belongs to nobody. Without keys the rows stand in the same order.

    Returns:
        One row. ``matched``: share of the records whose nearest released row is their own image; where m rows are
        equally near, the attacker guesses, and it counts as the share of own images among them. ``expected``: the share
        by chance. ``images``: records with an image. ``tied_rows``: equally near rows, on average. Then the areas under
        the curves (AUC) with which a smaller distance, ambiguity and uncertainty tell right matches from wrong ones: .5
        says nothing, 1 everything; NULL where all are right or all are wrong.
    """
    _refuse_tables(original, released, k)
    _refuse_keys(len(original), len(released), keys_original, keys_released)
    images, owners = _images(len(original), len(released), keys_original, keys_released)
    distances, indices = neighbours.find_nearest(original, released, k)
    measured = measure_neighbours(distances, indices, released)
    tied, right = _guesses(original, released, distances, indices, owners, images)
    chance = np.bincount(owners, minlength=len(original)) / len(released)
    probability = right / tied
    row: dict[str, float | int | None] = {
        "records": len(original),
        "released_rows": len(released),
        "images": int(np.count_nonzero(chance)),
        "matched": float(probability.mean()),
        "expected": float(chance.mean()),
        "tied_rows": float(tied.mean()),
    }
    for measure in ("distance", "ambiguity", "uncertainty"):
        row[f"{measure}_auc"] = auc(getattr(measured, measure), probability)
    return report_rows([row], MATCHING_ATTACK.schema)


def auc(values: Floats, probability: Floats) -> float | None:
    """Return the chance that a right match has a smaller value than a wrong one; None where there are not both.

    Equal values count half. `probability` is that of a match to be right: 1 and 0 where that is known.
    """
    _, codes = np.unique(values, return_inverse=True)
    right = np.bincount(codes, weights=probability)
    wrong = np.bincount(codes, weights=1 - probability)
    beyond = wrong.sum() - np.cumsum(wrong)  # wrong matches with a larger value
    with_itself = float(np.sum(probability * (1 - probability)))
    pairs = float(right.sum() * wrong.sum()) - with_itself
    if pairs <= 1e-9 * len(values):
        return None
    won = float(np.sum(right * (beyond + wrong / 2))) - with_itself / 2
    return min(max(won / pairs, 0.0), 1.0)


def _guesses(
    original: Floats, released: Floats, distances: Floats, indices: Ints, owners: Ints, images: Ints
) -> tuple[Floats, Floats]:
    """Count the released rows that are nearest to each record, and the record's own images among them."""
    is_alone = distances[:, 1] > distances[:, 0] * neighbours.SAME_FACTOR
    with_ties = np.flatnonzero(~is_alone)
    tied = np.ones(len(original))
    is_right = is_alone[owners] & (indices[owners, 0] == images)
    if len(with_ties):
        firsts, codes, counts = find_distinct_rows(released)
        _, queries, members = neighbours.find_tied_nearest(original[with_ties], released[firsts])
        queries = with_ties[queries]
        tied[with_ties] = np.bincount(queries, weights=counts[members], minlength=len(original))[with_ties]
        is_right |= np.isin(owners * len(firsts) + codes[images], queries * len(firsts) + members)
    return tied, np.bincount(owners[is_right], minlength=len(original)).astype(np.float64)


def _images(records: int, rows: int, keys_original: Keys, keys_released: Keys) -> tuple[Ints, Ints]:
    """Return the released rows that are somebody's image, and whose."""
    if keys_original is None:
        return np.arange(rows), np.arange(records)
    positions = pc.index_in(keys_released, value_set=keys_original, skip_nulls=True)
    positions = positions.combine_chunks() if isinstance(positions, pa.ChunkedArray) else positions
    owners = positions.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    images = np.flatnonzero(owners >= 0)
    return images, owners[images]


def _refuse_tables(original: Floats, released: Floats, k: int) -> None:
    if not len(original):
        raise ValueError("the original has no rows to look at.")
    if len(released) < k:
        raise ValueError(f"the release must have at least k = {k} rows; got {len(released)}.")
    if original.shape[1] != released.shape[1]:
        raise ValueError("the original and the release must have the same columns.")


def _refuse_keys(records: int, rows: int, keys_original: Keys, keys_released: Keys) -> None:
    if keys_original is None and keys_released is None:
        if records != rows:
            raise ValueError(
                f"without a key the release must have as many rows as the original, in the same order; "
                f"got {rows} and {records}; name the column that says whose row it is as key."
            )
        return
    if keys_original is None or keys_released is None:
        raise ValueError("a key must be given for both tables or for none.")
    if keys_original.null_count or len(pc.unique(keys_original)) < len(keys_original):
        raise ValueError("the key must be unique in the original and not NULL; name another column.")
    if keys_original.type != keys_released.type:
        raise ValueError(
            f"the key must have the same type in both tables; got {sql_type(keys_original.type)} and "
            f"{sql_type(keys_released.type)}."
        )
