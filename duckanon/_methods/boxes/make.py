"""Boxes: k-anonymous and l-diverse intervals that keep the requested statistics accurate.

The records are sorted by value and cut, like a k-d tree, until no box can be cut without losing its k people or its l
values; boxes tile the space and do not overlap. A small table is grown by looking several cuts ahead, or in each of
three ways by estimates alone, of which the cheapest is kept; a large one in one way, block by block. 'thorough' begins
subtrees anew with shaken estimates and keeps what is better, so it is never worse than one run. 100,000 records of
three columns take two seconds, thorough runs a hundred times that. In the end the promises are counted again from the
result alone.

References:
    Accurate Boxes, Section V; Fuzzy Boxes; REFERENCES.md, Boxes, "Tiling space with the boxes".
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from duckanon._core.common import progress
from duckanon._core.common import rules as option_rules
from duckanon._core.common.arguments import check_arguments, refuse_unless
from duckanon._core.common.arrays import Floats, Ints
from duckanon._core.common.people import count_people, drop_distinct_people, refuse_large_k
from duckanon._core.common.rules import Flag, Number, OneOf
from duckanon._core.numbers.parts import NumberParts, cut_column, select_values
from duckanon._core.numbers.support import NumberSupport, find_support
from duckanon._methods.boxes import blocks as table_blocks
from duckanon._methods.boxes import box_search
from duckanon._methods.boxes.blocks import Block, cut_into_blocks
from duckanon._methods.boxes.box_search import BoxRules, Lookahead, grow_boxes, join_leaves, join_nodes
from duckanon._methods.boxes.cuts import MORE_SHARES, SHARES
from duckanon._methods.boxes.nodes import KINDS, Boxes, Leaves, Nodes, Points, is_diverse, make_roots, sort_by_value
from duckanon._methods.boxes.shaping import Sensitivities, Statistic, WholeTable, measure_sensitivities

_LARGE = 200_000  # a table of more records is grown in one way only, with an eye on the time
_UNEVEN = 0.02  # how much better an uneven cut of a large table must be: even trees are shallow, so quick to build
_SMALL, _MIDDLING = 20_000, 50_000  # records of tables up to which more cuts are looked at, in two seconds
_CLOSELY = 100_000  # records of a table up to which all first cuts of small nodes are tried
_TRIES, _WIDE = 6, 4  # first cuts tried on nodes of three or four, and of five to eight leaves; time grows with both
# Look-ahead, look-ahead that takes off thinner tails, and plain halving.  The first wins among equals.
_PORTFOLIO = (SHARES, MORE_SHARES, SHARES[:1])
# Leaves of the subtrees that are begun anew, how often, and how much the estimates of their cuts are shaken.  Small
# subtrees are quick to grow, and chance finds their best cuts, so they are begun anew more often.
_STAGES = ((256, 6, 0.02), (64, 10, 0.03), (16, 40, 0.05))


def grow_table(
    points: Points, rules: BoxRules, effort: str, limit: float, strata: Ints | None = None
) -> Iterator[Leaves]:
    """Make the boxes of records that are sorted by value, one batch of blocks after the other.

    The number of records decides how hard to look, unless the effort is 'quick'; until `limit`, a time of
    `time.monotonic`, if it is 'thorough'.
    """
    size, thorough = len(points.values[0]), effort == "thorough"
    large = size > _LARGE or effort == "quick"
    # A large table takes long enough without the last percent.
    share = 0.0 if large else min(_CLOSELY / size, 1.0)
    # Even trees cost nothing where the sensitivities are the same everywhere; else they do.
    uneven = _UNEVEN if all(isinstance(weight, float) for weight in points.weights) else _UNEVEN / 4
    tries, wide = max(round(_TRIES * share), 1), max(round(_WIDE * share), 1)
    rules = replace(rules, tries=tries, wide=wide, uneven=uneven if large else 0.0)
    begun, done = time.monotonic(), 0
    for batch in _batch_blocks(cut_into_blocks(points, rules, strata)):
        records = np.concatenate([block.records for block in batch])
        lower, upper = np.array([block.lower for block in batch]), np.array([block.upper for block in batch])
        after = (done + len(records)) / size
        if batch[0].whole:
            leaves = Leaves(records, np.array([len(records)]), np.array([0]), lower, upper)
        else:
            batch_points = points.take(records)
            nodes = make_roots(batch_points, np.array([len(block.records) for block in batch]), lower, upper)
            # Every batch has its share of the time.
            deadline = begun + (limit - begun) * after if thorough else begun
            with progress.step(done / size, after):
                if large and not thorough:
                    leaves = grow_boxes(batch_points, nodes, rules)[0]
                else:
                    leaves = _grow_best(batch_points, nodes, rules, thorough, deadline)
            leaves = leaves._replace(records=records.take(leaves.records))
        yield leaves
        done += len(records)
        progress.advance(done / size)


def _grow_best(points: Points, nodes: Nodes, rules: BoxRules, thorough: bool, deadline: float) -> Leaves:
    """Grow every node in the way that costs least: by looking ahead, or in one way of the portfolio."""
    results: list[tuple[Leaves, Floats]] = []
    if rules.l == 1 and not points.tiles:  # looking ahead knows neither different values nor cells
        size = len(points.values[0])
        effort = box_search.FULL if size <= _SMALL else box_search.MOST if size <= _MIDDLING else box_search.HALF
        if not thorough:
            return Lookahead(points, rules.k, effort).find_boxes(nodes)[0]
        efforts = [effort, box_search.DEEP] if time.monotonic() <= deadline else [effort]
        with progress.step(0, 0):  # the restarts that follow take nearly all the time
            results = [Lookahead(points, rules.k, each).find_boxes(nodes) for each in efforts]
    # The last leaves are left for the winner: trying more cuts of those makes no way cost more than it did.
    costs = []
    for shares in _PORTFOLIO:
        costs.append(grow_boxes(points, nodes, replace(rules, shares=shares, tries=1, wide=1))[1])
        if not thorough:  # where it is, the search that follows takes nearly all the time
            progress.advance(len(costs) / (len(_PORTFOLIO) + 1))
    winner = np.argmin(costs, axis=0)
    for way in np.unique(winner):
        of_way = np.flatnonzero(winner == way)
        chosen, way_rules = nodes.keep(winner == way), replace(rules, shares=_PORTFOLIO[way])
        if thorough:
            leaves, cost = _restart(points, chosen, way_rules, deadline)
        else:
            leaves, cost, _ = grow_boxes(points, chosen, way_rules)
        all_costs = np.full(len(nodes.sizes), np.inf)
        all_costs[of_way] = cost
        results.append((leaves._replace(roots=of_way[leaves.roots]), all_costs))
    cheapest = np.argmin([cost for _, cost in results], axis=0)
    return join_leaves([leaves.keep(cheapest[leaves.roots] == way) for way, (leaves, _) in enumerate(results)], nodes)


def _restart(points: Points, nodes: Nodes, rules: BoxRules, deadline: float) -> tuple[Leaves, Floats]:
    """Find boxes that are at least as good as those of one run, and what they cost, as `grow_boxes` returns them.

    A subtree is an individual: its offspring are grown from estimates multiplied by random factors, and the fittest of
    each subtree lives on. First large subtrees compete, then the smaller ones within the winners. Nothing new is begun
    after `deadline`, a time of `time.monotonic`.
    """
    random = np.random.default_rng(rules.k)
    rounds, total = 0, sum(tries for _, tries, _ in _STAGES)
    following = [*(leaves for leaves, _, _ in _STAGES[1:]), 0]
    boxes, costs, inner = grow_boxes(points, nodes, rules, _STAGES[0][0])
    done, owners = [boxes], inner.roots  # the root of each node of a stage
    for (_, tries, noise), until in zip(_STAGES, following, strict=True):
        best = _grow_subtrees(points, inner, rules, rules, until)
        for _ in range(tries):
            if time.monotonic() > deadline or not len(inner.sizes):
                break
            # Chance varies the cuts, so that few need to be tried each time.
            shaken = replace(rules, noise=noise, random=random, wide=1, tries=min(rules.tries, 4))
            best = _take_cheaper(best, _grow_subtrees(points, inner, shaken, rules, until), inner)
            rounds += 1
            progress.advance(rounds / total)
        np.add.at(costs, owners, best.early)
        done.append(best.boxes._replace(roots=owners[best.boxes.roots]))
        owners, inner = owners[best.below.roots], best.below
    return join_leaves(done, nodes), costs


class _Subtrees(NamedTuple):
    """Subtrees grown down to the nodes of the next stage."""

    boxes: Leaves  # those that are finished on the way
    early: Floats  # what these boxes cost in each subtree
    below: Nodes
    costs: Floats  # what each subtree costs if the nodes below are grown without chance


def _grow_subtrees(points: Points, nodes: Nodes, shaken: BoxRules, rules: BoxRules, until: int) -> _Subtrees:
    """Grow subtrees by shaken rules, and see what they would cost if plain rules finished them."""
    boxes, early, below = grow_boxes(points, nodes, shaken, until)
    if not until:
        return _Subtrees(boxes, early, below.keep(np.zeros(len(below.sizes), dtype=np.bool_)), early)
    _, late, _ = grow_boxes(points, below, rules)
    return _Subtrees(boxes, early, below, early + np.bincount(below.roots, late, len(early)))


def _take_cheaper(first: _Subtrees, second: _Subtrees, nodes: Nodes) -> _Subtrees:
    """Take each subtree from where it is cheaper."""
    change = second.costs < first.costs
    pairs = ((first, ~change), (second, change))
    return _Subtrees(
        join_leaves([grown.boxes.keep(taken[grown.boxes.roots]) for grown, taken in pairs], nodes),
        np.where(change, second.early, first.early),
        join_nodes([grown.below.keep(taken[grown.below.roots]) for grown, taken in pairs], nodes),
        np.where(change, second.costs, first.costs),
    )


def _batch_blocks(table: Iterator[Block]) -> Iterator[list[Block]]:
    """Join small blocks to batches of up to `BLOCK` records; a block that cannot be cut comes alone."""
    batch: list[Block] = []
    records = 0
    for block in table:
        if block.whole:
            yield [block]
            continue
        if batch and records + len(block.records) > table_blocks.BLOCK:
            yield batch
            batch, records = [], 0
        batch.append(block)
        records += len(block.records)
    if batch:
        yield batch


_LARGEST = 1e100  # sums of squares of such numbers are still far from the largest double


def check_promises(
    boxes: Boxes,
    data: Mapping[str, Floats],
    k: int,
    l: int,  # noqa: E741 - the papers' name
    epsilon: Mapping[str, float],
    people: Ints | None,
    strata: Ints | None,
) -> None:
    """Count the promises again, from the result only."""
    counts = np.bincount(boxes.box)
    if not np.array_equal(counts, boxes.counts) or count_people(boxes.box, people, len(counts)).min() < k:
        raise AssertionError(f"a box has fewer than {k} {'records' if people is None else 'people'}.")
    if strata is not None:
        stratum_of_box = np.empty(len(counts), np.int64)
        stratum_of_box[boxes.box] = strata
        if (stratum_of_box[boxes.box] != strata).any():
            raise AssertionError("a box has records of two strata.")
    if boxes.parts is not None:
        for column, values in enumerate(data.values()):
            lower, upper = boxes.parts[0][boxes.box, column], boxes.parts[1][boxes.box, column]
            if (values < lower).any() or (values > upper).any():
                raise AssertionError("a record lies outside its box.")
    if l > 1:
        orders = [np.lexsort((values, boxes.box)) for values in data.values()]
        starts = np.cumsum(counts) - counts
        if not is_diverse(list(data.values()), orders, starts, counts, l, list(epsilon.values())).all():
            raise AssertionError(f"a box has fewer than {l} different values in a column.")


def check_columns(columns: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Return the columns as arrays, or say what is wrong with them."""
    data = {name: np.ascontiguousarray(values, dtype=np.float64) for name, values in columns.items()}
    if not data:
        raise ValueError("columns must have at least one column; got none.")
    shapes = {values.shape for values in data.values()}
    if len(shapes) > 1 or len(shapes.pop()) != 1:
        raise ValueError("columns must be lists of the same length; got others.")
    for name, values in data.items():
        if not np.isfinite(values).all():
            raise ValueError(f"column '{name}' must hold finite numbers; got NaN or infinity.")
        if values.size and max(-values.min(), values.max()) > _LARGEST:
            raise ValueError(f"column '{name}' must hold numbers up to {_LARGEST:g}, to be squared; got larger ones.")
    return data


def check_distances(data: Mapping[str, Floats], epsilon: Mapping[str, float] | None) -> dict[str, float]:
    """Return how far apart values of each column must be to count as different, or say what is wrong with epsilon."""
    distances = dict.fromkeys(data, 0.0)
    for name, distance in (epsilon or {}).items():
        if name not in data:
            raise ValueError(f"epsilon must name columns among {', '.join(data)}; got '{name}'.")
        refuse_unless(Number(0), f"epsilon of column '{name}'", distance)
        distances[name] = float(distance)
    return distances


def refuse_uniform_columns(data: Mapping[str, Floats], l: int, distances: Mapping[str, float]) -> None:  # noqa: E741
    """Say which column of the whole table has not enough values that are far enough apart."""
    for name, values in data.items():
        everything = np.array([0]), np.array([len(values)])
        if not is_diverse([values], [np.argsort(values)], *everything, l, [distances[name]])[0]:
            raise ValueError(f"column '{name}' must have at least {l} values that are far enough apart; it has fewer.")


@dataclass(frozen=True)
class BoxOptions:
    """What boxes are made like."""

    l: int = 1  # noqa: E741 - the papers' name; values of each column that are at least its epsilon apart
    epsilon: Mapping[str, float] | None = None  # by column; 0 where none is named: values only differ
    # 'quick' cuts by estimates alone, as tables of more than 200,000 records are cut anyway; 'thorough' begins subtrees
    # anew many times, too, and takes about a hundred times longer
    effort: str = "default"
    seconds: float | None = None  # when 'thorough' stops; without, it always finds the same boxes
    kind: str = "parts"  # which of `KINDS` will be published: their widths are made small
    # whether everybody may know the smallest and largest values of a box, real people's, which 'bounds' publishes
    bounds_are_public: bool = False

    def __post_init__(self) -> None:
        refuse_unless(option_rules.Whole(1), "l", self.l)
        refuse_unless(OneOf("quick", "default", "thorough"), "effort", self.effort)
        refuse_unless(Number(0, null=True), "seconds", self.seconds)
        refuse_unless(OneOf(*KINDS), "kind", self.kind)
        refuse_unless(Flag(), "bounds_are_public", self.bounds_are_public)
        if self.kind == "bounds" and not self.bounds_are_public:
            raise ValueError(
                "kind 'bounds' publishes real people's values; take 'parts', or say bounds_are_public=True where "
                "everybody may know them."
            )


@check_arguments(k=option_rules.Whole(2))
def make_boxes(
    columns: Mapping[str, ArrayLike],
    k: int,
    statistics: Sequence[Statistic] | None = None,
    options: BoxOptions = BoxOptions(),
    people: Ints | None = None,
    supports: Mapping[str, NumberSupport] | None = None,
    strata: Ints | None = None,
    whole: WholeTable | None = None,
) -> Boxes:
    """Put records into boxes of at least k records that make the requested statistics as accurate as possible.

    The boxes do not depend on the order of the records.  Equal records are in the same box, if strata are.

    Args:
        columns: All of the same length, without NaN and infinity; those that no statistic uses do not shape the boxes.
        supports: The units and ends of columns, for 'parts'; those of other columns are learned from the values.  Boxes
            are then made of the coded values.
        strata: Each must hold enough for a box.
        whole: What is known of the table that the columns are a part of; None: they are the whole table.

    Examples:
        >>> boxes = make_boxes({"age": [21, 25, 33, 38, 61, 70]}, k=3)
        >>> boxes.box.tolist()
        [0, 0, 0, 1, 1, 1]
        >>> lower, upper = boxes.intervals("parts")
        >>> lower.ravel().tolist(), upper.ravel().tolist()
        ([0.0, 35.0], [34.0, 119.0])
    """
    l, kind = options.l, options.kind  # noqa: E741
    data = check_columns(columns)
    refuse_large_k(k, len(next(iter(data.values()))), people, "records")
    people = drop_distinct_people(people)
    refuse_unless(option_rules.Whole(1, k), "l", l)
    distances = check_distances(data, options.epsilon)
    support_of_column = dict(supports or {})
    if kind == "parts":
        for name, values in data.items():
            if name not in support_of_column:
                support_of_column[name] = find_support(None, values, k, people, is_exact=l > 1)
        data = {name: support_of_column[name].round_and_clip(values) for name, values in data.items()}
    if l > 1:
        refuse_uniform_columns(data, l, distances)
    # Sorted by value, sums and samples are the same for every order of the records.
    order = sort_by_value([*data.values()] if strata is None else [*data.values(), strata.astype(np.float64)])
    ordered = {name: values.take(order) for name, values in data.items()}
    people_in_order, strata_in_order = (None if array is None else array.take(order) for array in (people, strata))
    sensitivity = measure_sensitivities(ordered, statistics) if whole is None else whole.sensitivities
    points, shaping, point_distances = _select_points(ordered, sensitivity, l, distances)
    points = points._replace(people=people_in_order)
    parts = None
    if kind == "parts":
        parts = []
        for name, values in ordered.items():
            if whole is not None and name in whole.parts:
                parts.append(select_values(whole.parts[name], values))
            else:
                new_parts = cut_column(values, k, support_of_column[name], people_in_order, strata_in_order)
                # The ends of parts are published: how many people share each is counted again.
                if count_people(new_parts.number, people_in_order, len(new_parts.lower)).min() < k:
                    raise AssertionError(
                        f"a part of a column has fewer than {k} {'records' if people is None else 'people'}."
                    )
                parts.append(new_parts)
        of_shaping = [parts[column] for column in shaping]
        points = points._replace(parts=[(of.lower.take(of.number), of.upper.take(of.number)) for of in of_shaping])
    # Cells are as wide as the gaps to their neighbours: boxes are made by the records' widths and by the cells', too.
    ways = [points, points._replace(tiles=True)] if kind == "cell" else [points]
    rules = BoxRules(k, l, point_distances)
    results: list[Boxes] = []
    for way, way_points in enumerate(ways):
        deadline = math.inf if options.seconds is None else time.monotonic() + options.seconds / len(ways)
        with progress.step(way / len(ways), (way + 1) / len(ways)):
            if shaping:
                batches = list(grow_table(way_points, rules, options.effort, deadline, strata_in_order))
            else:
                batches = _box_strata(len(order), strata_in_order)
        results.append(_number_boxes(ordered, order, shaping, batches, sensitivity, parts))
    boxes = min(results, key=lambda boxes: boxes.uncertainty(kind)) if len(results) > 1 else results[0]
    check_promises(boxes, data, k, l, distances, people, strata)
    return boxes


def _select_points(
    columns: Mapping[str, Floats],
    sensitivity: Sensitivities,
    l: int,  # noqa: E741
    distances: Mapping[str, float],
) -> tuple[Points, list[int], list[float]]:
    """Return what the search works on, which columns shape the boxes, and how far apart values of its columns must be.

    Columns to which no statistic is sensitive take part only where they have to be diverse.
    """
    names = list(columns)
    weights = sensitivity.at(list(columns.values()))
    shaping = [column for column, weight in enumerate(weights) if np.max(weight) > 0]
    passive = [column for column in range(len(names)) if column not in shaping] if l > 1 else []
    values = [columns[names[column]] for column in shaping + passive]
    points = Points(values, [weights[column] for column in shaping])
    return points, shaping, [distances[names[column]] for column in shaping + passive]


def _box_strata(records: int, strata: Ints | None) -> list[Leaves]:
    """Put all records of a stratum into one box, as no column shapes any."""
    rows = np.arange(records) if strata is None else np.argsort(strata, kind="stable")
    sizes = np.array([records]) if strata is None else np.bincount(strata)
    no_ends = np.zeros((len(sizes), 0))
    return [Leaves(rows, sizes, np.arange(len(sizes)), no_ends, no_ends)]


def _number_boxes(
    ordered: Mapping[str, Floats],
    order: Ints,
    shaping: list[int],
    batches: list[Leaves],
    sensitivity: Sensitivities,
    parts: list[NumberParts] | None,
) -> Boxes:
    """Give boxes numbers, by their first record in the order of values, and find their ends.

    The batches have rows of `ordered`, the columns sorted by value, of which row i is the record `order[i]`; `parts`
    are those of each column, where boxes are made of them.
    """
    counts = np.concatenate([leaves.sizes for leaves in batches])
    rows = np.concatenate([leaves.records for leaves in batches])
    starts = np.cumsum(counts) - counts
    rank = np.argsort(np.minimum.reduceat(rows, starts))
    number = np.empty_like(rank)
    number[rank] = np.arange(len(rank))
    box = np.empty(len(order), dtype=np.int64)
    box[order[rows]] = np.repeat(number, counts)
    bounds = np.empty((2, len(counts), len(ordered)))
    cell = np.empty((2, len(counts), len(ordered)))
    for column, values in enumerate(ordered.values()):
        by_box = values.take(rows)
        bounds[0, :, column] = np.minimum.reduceat(by_box, starts)[rank]
        bounds[1, :, column] = np.maximum.reduceat(by_box, starts)[rank]
        cell[0, :, column], cell[1, :, column] = values.min(), values.max()
    for position, column in enumerate(shaping):
        cell[0, :, column] = np.concatenate([leaves.lower[:, position] for leaves in batches])[rank]
        cell[1, :, column] = np.concatenate([leaves.upper[:, position] for leaves in batches])[rank]
    boxes = Boxes(tuple(ordered), box, counts[rank], (bounds[0], bounds[1]), (cell[0], cell[1]), sensitivity)
    return boxes if parts is None else _set_part_ends(boxes, parts, shaping, rows, starts, rank)


def _set_part_ends(
    boxes: Boxes, parts: list[NumberParts], shaping: list[int], rows: Ints, starts: Ints, rank: Ints
) -> Boxes:
    """Let each box end where its first and its last part end; in columns that do not shape, all of them end alike."""
    ends = np.empty((2, len(starts), len(parts)))
    is_open = np.zeros(ends.shape, np.bool_)
    for column, of_column in enumerate(parts):
        by_box = of_column.number.take(rows)
        if column in shaping:
            first, last = np.minimum.reduceat(by_box, starts)[rank], np.maximum.reduceat(by_box, starts)[rank]
        else:
            first = np.full(len(starts), of_column.lower.argmin())
            last = np.full(len(starts), of_column.upper.argmax())
        ends[0, :, column], ends[1, :, column] = of_column.lower[first], of_column.upper[last]
        is_open[0, :, column], is_open[1, :, column] = of_column.far_below[first], of_column.far_above[last]
    return replace(boxes, parts=(ends[0], ends[1]), open_ends=(is_open[0], is_open[1]))
