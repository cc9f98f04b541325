"""anon.spectral_release: what an attacker finds in it, what contradicts itself, and what an analyst keeps."""

from __future__ import annotations

import contextlib
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp, rankdata

from duckanon import spectral
from duckanon._core.common import progress
from duckanon._core.encoding.column_split import SplitOptions, split_columns
from duckanon._core.privacy.audit import audit_pairs
from duckanon._methods.releasable.safe_numbers import SafeNumbers
from duckanon._methods.swap.thesis_columns import _Numbers as NumbersOfSurvey
from duckanon._methods.synthesize.orthogonal import apportion, draw_in_clusters
from duckanon._methods.synthesize.pair_tables import choose_by_score
from duckanon._methods.synthesize.redrawing import Redrawing
from duckanon._methods.synthesize.table_groups import find_smallest_size, passes
from tests.release.surveys import age_groups, columns_of, income_survey, social_survey


def released(table: pa.Table, **options: object) -> pa.Table:
    """Release a table with clusters of 200, unless told otherwise."""
    return spectral.spectral_release(table, **{"cluster_size": 200, "seed": 1, **options}).read_all()  # type: ignore[arg-type]


def few_hold(original: pa.Table, made: pa.Table, least: int) -> dict[str, int]:
    """Count the released values of each column that somebody holds, but fewer people than so many.

    Where few hold the text `other`, it is the label of all merged ones: it stands for whoever has no released value.
    """
    found = {}
    for name in original.column_names:
        holders, released_values = Counter(original.column(name).to_pylist()), made.column(name).to_pylist()
        if 0 < holders["other"] < least:
            shown = set(released_values)
            holders["other"] += sum(count for value, count in holders.items() if value not in shown)
        count = sum(0 < holders[value] < least for value in released_values)
        if count:
            found[name] = count
    return found


# What an attacker finds


@pytest.mark.thorough
@pytest.mark.parametrize("keep_out", [0, 25])
def test_who_knows_everybody_but_one_does_not_count_the_last_one(keep_out: int) -> None:
    """Shares are exact, so that the last person follows from the others', unless the release is silent about some."""
    table = income_survey(600, 3).select(["age", "sex", "wage"])
    sexes = columns_of(table)["sex"]
    learnt = []
    for person in range(30):
        made = columns_of(released(table, keep_out=keep_out, cluster_size=600, seed=person))["sex"]
        men = int((made == "male").sum()) - int((np.delete(sexes, person) == "male").sum())
        learnt.append(men == int(sexes[person] == "male"))
    assert np.mean(learnt) == 1.0 if keep_out == 0 else np.mean(learnt) < 0.5


@pytest.mark.thorough
@pytest.mark.parametrize("keep_out", [0, 25])
def test_who_knows_everybody_but_one_does_not_compute_the_last_one(keep_out: int) -> None:
    """Numbers come from the table's distribution: an attacker tries which last number makes it the released one."""
    random = np.random.default_rng(4)
    numbers = np.round(random.normal(size=400), 3)
    candidates = np.arange(-3, 3, 0.2)
    errors = []
    for person in range(7):
        table = pa.table({"x": numbers, "y": random.normal(size=400)})
        made = np.sort(columns_of(released(table, keep_out=keep_out, cluster_size=400, seed=person))["x"])
        distances = []
        for candidate in candidates:
            numbers_tried = numbers.copy()
            numbers_tried[person] = np.round(candidate, 3)
            column = split_columns(pa.table({"x": numbers_tried}), None, SplitOptions(10, {}, None, "error"))[0]
            safe = SafeNumbers.of(column, None, 10)
            places = safe.at_ranks(np.arange(400.0), np.arange(400), None)
            distances.append(np.abs(np.sort(safe.grid.numbers(places)) - made).sum())
        errors.append(abs(candidates[np.argmin(distances)] - numbers[person]))
    assert np.median(errors) < 0.15 if keep_out == 0 else np.median(errors) > 0.5


@pytest.mark.thorough
@pytest.mark.parametrize("survey", [income_survey, social_survey])
def test_no_value_of_a_few_people_comes_out(survey) -> None:
    """Nothing that one or two people hold, and of amounts and categories nothing that fewer than k people hold."""
    table = survey(1500, 5)
    made = released(table, nulls="category")
    assert few_hold(table, made, 3) == {}
    wide = [
        name for name in ("wage", "self_employed", "pension", "income", "region", "edu") if name in made.column_names
    ]
    assert few_hold(table.select(wide), made.select(wide), 10) == {}


@pytest.mark.thorough
def test_how_large_the_largest_number_is_shows_nowhere() -> None:
    """Who knows all other people, the code and the seed learns nothing of one fortune: the release is the same.

    An end that is a mean of the k largest numbers gives it away.
    """
    survey = income_survey(600, 6).select(["age", "sex", "wage"])
    wages = columns_of(survey)["wage"]
    largest = int(wages.argmax())
    for release in (spectral.spectral_release, spectral.synthesize, spectral.svd_swap, spectral.pica):
        found = []
        for fortune in (wages[largest], 1000 * wages[largest]):
            with_fortune = np.where(np.arange(600) == largest, fortune, wages)
            made = release(survey.set_column(2, "wage", pa.array(with_fortune)), seed=1)
            found.append(made.read_all())
        assert found[0].equals(found[1])
        assert not np.isin(np.sort(wages)[-5:], columns_of(found[0])["wage"]).any()


@pytest.mark.thorough
def test_the_sizes_of_groups_do_not_tell_the_last_persons_label() -> None:
    """Who knows the labels of all others would only have to count: exact sizes were released."""
    random = np.random.default_rng(7)
    table = pa.table({"x": random.normal(size=900), "y": random.normal(size=900), "group": ["a", "b", "b"] * 300})

    def size(keep_out: int, seed: int) -> int:
        options = {"by": ["group"], "cluster_size": 100, "keep_out": keep_out, "seed": seed}
        return spectral.spectral_release(table, ["x", "y"], **options).read_all().column("group").to_pylist().count("a")

    assert size(0, 1) == 300
    sizes = [size(25, seed) for seed in range(8)]
    assert len(set(sizes)) > 3
    assert max(abs(one - 300) for one in sizes) <= 25


def test_groups_release_no_value_of_a_few_people_of_other_groups() -> None:
    """What nobody of a group holds may be a single person's in another one."""
    random = np.random.default_rng(0)
    group = np.repeat([0, 1], 400)
    number = np.where(group == 0, 10 * random.integers(0, 60, 800), random.integers(0, 600, 800))
    table = pa.table({"number": number, "other": random.normal(size=800), "group": np.array(["a", "b"])[group]})
    made = released(table, cols=["number", "other"], by=["group"], cluster_size=100, k=5)
    assert made.column_names == ["number", "other", "group"]
    assert few_hold(table.select(["number"]), made.select(["number"]), 3) == {}
    sizes = Counter(made["group"].to_pylist())
    assert sum(sizes.values()) == 800
    assert abs(sizes["a"] - 400) <= 25


def test_a_group_in_which_nobody_has_a_number() -> None:
    """All of it are zeros, or any other special value, which there are as many of afterwards."""
    random = np.random.default_rng(0)
    group = np.arange(1200) % 2
    wage = np.where(group == 0, 0, random.lognormal(9, 1, 1200) // 10 * 10)
    table = pa.table({"age": random.integers(18, 70, 1200), "wage": wage, "group": group})
    made = released(table, cols=["age", "wage"], by=["group"], cluster_size=100)
    assert set(np.asarray(made["wage"])[np.asarray(made["group"]) == 0]) == {0.0}
    assert (np.asarray(made["wage"])[np.asarray(made["group"]) == 1] > 0).all()


def test_people_with_many_rows_are_one() -> None:
    """A value in forty rows of three people is that of three people; a cluster is never that of a few people."""
    random = np.random.default_rng(1)
    person = np.arange(2000) // 20
    place = np.where(np.isin(person, [0, 1, 2]), "clinic", random.choice(["home", "work"], 2000))
    table = pa.table({"person": person, "place": place, "level": np.round(person + random.normal(size=2000), 2)})
    made = released(table, cols=["place", "level"], person="person", keep_out=5, cluster_size=20)
    assert made.column_names == ["place", "level"]
    assert "clinic" not in made["place"].to_pylist()
    assert "clinic" in released(table, cols=["place", "level"])["place"].to_pylist()


@pytest.mark.thorough
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 12),
    st.sampled_from(["whole", "round", "float", "decimal", "date", "text", "flag"]),
)
def test_any_column_comes_out_without_rare_values(seed: int, k: int, kind: str) -> None:
    """Of any type and shape, or the column is refused in one sentence."""
    random = np.random.default_rng(seed)
    base = random.standard_gamma(random.uniform(0.3, 4), 260) * 10 ** random.uniform(0, 4)
    base[random.random(260) < random.choice([0, 0.3])] = 0
    made_of = {
        "whole": lambda: pa.array(base.astype(np.int64)),
        "round": lambda: pa.array(np.round(base, 1)),
        "float": lambda: pa.array(base.astype(np.float32)),
        "decimal": lambda: pa.array(np.round(base, 2)).cast(pa.decimal128(18, 2), safe=False),
        "date": lambda: pa.array(base.astype(np.int32), pa.date32()),
        "text": lambda: pa.array([f"v{int(value) % 30}" for value in base]),
        "flag": lambda: pa.array(base > np.median(base)),
    }
    values = made_of[kind]()
    values = pa.array(
        [None if hidden else value for value, hidden in zip(values.to_pylist(), base > 1e3, strict=True)], values.type
    )
    table = pa.table({"x": values, "y": random.normal(size=260)})
    with contextlib.suppress(ValueError):  # the column is refused: too few people hold its values
        made = released(table, k=k, nulls="category", cluster_size=100)
        assert made.schema == table.schema
        assert few_hold(table, made, min(k, 3)) == {}


# What contradicts itself


@pytest.mark.thorough
def test_what_follows_from_other_columns_follows_in_the_release() -> None:
    """Age groups, skipped questions, dates of marriage, body mass index and sums, in every row."""
    made = columns_of(released(social_survey(1500, 7), nulls="category"))
    assert (age_groups(made["age"]) == made["agegr"]).all()
    assert ((made["smoke"] == "NO") == (made["nociga"] == -8)).all()
    assert (made["nociga"][made["nociga"] != -8] > 0).all()
    assert ((made["marital"] == "SINGLE") == np.isnan(made["ymarr"].astype(float))).all()
    assert ((made["marital"] == "SINGLE") == np.isnan(made["mmarr"].astype(float))).all()
    assert np.abs(made["bmi"] - made["weight"] / (made["height"] / 100) ** 2).max() < 0.05
    paid = columns_of(released(income_survey(1500, 7)))
    assert np.abs(paid["income"] - paid["wage"] - paid["self_employed"] - paid["pension"]).max() < 0.005
    assert ((paid["status"] == "works") >= (paid["wage"] > 0)).mean() > 0.99


def test_without_derived_columns_contradictions_come_back() -> None:
    """The option is there for those who want every column drawn; the tests above can fail."""
    made = columns_of(released(social_survey(1500, 7), nulls="category", derived="off"))
    assert (age_groups(made["age"]) != made["agegr"]).mean() > 0.05


# What an analyst keeps


@pytest.mark.thorough
@pytest.mark.parametrize("survey", [income_survey, social_survey])
@pytest.mark.parametrize("size", [200, 10_000])
def test_distributions_shares_and_correlations_stay(survey, size: int) -> None:
    """KS of numbers at most .01 and what leaving people out adds, special shares within .005, correlations .025."""
    table = survey(1500, 8)
    data, made = columns_of(table), columns_of(released(table, cluster_size=size, nulls="category"))
    numbers = [name for name in data if data[name].dtype.kind in "if" and len(set(data[name])) > 12]
    known = {name: (~np.isnan(data[name].astype(float)), ~np.isnan(made[name].astype(float))) for name in numbers}
    distances = {
        name: ks_2samp(data[name][before], made[name][after]).statistic for name, (before, after) in known.items()
    }
    assert np.median(list(distances.values())) <= 0.008
    # Values made of two whole numbers are nearly all those of one or two people, whom the release must avoid.
    assert distances.pop("bmi", 0.0) <= 0.02
    # A sum of three drawn columns: .005 to .019 with eight seeds.
    assert distances.pop("income", 0.0) <= 0.025
    # 25 of 1,500 left out at random: in 95 % of the cases at most 1.36 sqrt(25 / (1,500 x 1,475)).
    assert max(distances.values()) <= 0.01 + 0.0046
    specials = (
        {"wage": 0, "self_employed": 0, "pension": 0} if survey is income_survey else {"nociga": -8, "unempdur": -8}
    )
    for name, value in specials.items():
        assert abs((data[name] == value).mean() - (made[name] == value).mean()) <= (
            0.005 if name != "pension" else 0.02
        )
    before, after = (np.corrcoef(_comparable(one, data)) for one in (data, made))
    assert np.median(np.abs(before - after)[np.triu_indices(len(before), 1)]) <= 0.025


def _comparable(table: dict[str, np.ndarray], original: dict[str, np.ndarray]) -> np.ndarray:
    """Take ranks of numbers, and indicators of categories that at least 2 % have."""
    rows = []
    for name, values in table.items():
        if values.dtype.kind in "if" and not np.isnan(original[name].astype(float)).any():
            rows.append(rankdata(values))
        elif values.dtype.kind not in "if":
            shares = Counter(original[name])
            rows += [values == one for one in sorted(shares) if shares[one] >= 0.02 * len(values)]
    return np.array(rows, np.float64)


@pytest.mark.thorough
def test_more_rows_have_the_same_distribution() -> None:
    """Many more than the table has, and hardly any."""
    table = income_survey(1500, 9)
    assert released(table, rows=3).num_rows == 3
    made = released(table, rows=20_000)
    assert made.num_rows == 20_000
    assert ks_2samp(columns_of(table)["wage"], columns_of(made)["wage"]).statistic <= 0.01
    assert few_hold(table.select(["wage"]), made.select(["wage"]), 10) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
def test_thin_tails_of_few_digits_and_what_is_computed_keep_their_distribution(seed: int) -> None:
    """Of measurements in tenths the last ones are a few people's each; of an index of two, nearly all are."""
    random = np.random.default_rng(seed)
    calcium = np.round(9.45 + 0.35 * random.standard_t(4, 2000), 1)
    height = np.round(random.normal(168, 10, 2000), 1)
    weight = np.round(np.exp(random.normal(np.log(height - 92), 0.2)), 1)
    index = np.round(weight / (height / 100) ** 2, 2)
    table = pa.table({"calcium": calcium, "height": height, "weight": weight, "index": index})
    made = released(table, cluster_size=300)
    assert few_hold(table, made, 3) == {}
    distances = {
        name: ks_2samp(*(columns_of(one)[name] for one in (table, made))).statistic for name in table.schema.names
    }
    assert max(distances.values()) <= 0.01, distances


def test_many_categories_keep_their_shares_and_their_means() -> None:
    """Of 100 districts each keeps its people and its wages; they are as many components as a few numbers."""
    random = np.random.default_rng(12)
    district = random.choice(100, 6000, p=random.dirichlet(np.full(100, 4.0)))
    wage = np.round(np.exp(8 + random.normal(size=100)[district] + random.normal(size=6000)))
    names = np.array([f"d{number:02}" for number in range(100)])
    table = pa.table({"district": names[district], "wage": wage, "age": random.integers(20, 70, 6000)})
    parts = split_columns(table, None, SplitOptions(10, {}, None, "error"))
    assert Redrawing.of(parts, None, 10, "auto", random).rank <= 10
    made = columns_of(released(table, cluster_size=500))
    shares = [np.array([(one == name).mean() for name in names]) for one in (names[district], made["district"])]
    assert np.abs(shares[0] - shares[1]).sum() / 2 <= 0.005
    common = [name for name, share in zip(names, shares[0], strict=True) if share >= 0.008]
    means = [
        [np.log(values[labels == name]).mean() for name in common]
        for labels, values in ((names[district], wage), (made["district"], made["wage"]))
    ]
    assert np.corrcoef(means)[0, 1] >= 0.95


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 4))
def test_clusters_keep_means_and_covariances(seed: int, width: int, count: int) -> None:
    """Exactly, cluster by cluster; and nothing else: rows are new."""
    random = np.random.default_rng(seed)
    matrix = random.standard_gamma(1, (40 * count, width)) @ random.normal(size=(width, width))
    labels = np.repeat(np.arange(count), 40).astype(np.int32)
    labels = labels[random.permutation(len(labels))]
    made = draw_in_clusters(matrix, labels, len(matrix), random)
    np.testing.assert_allclose(made.mean(axis=0), matrix.mean(axis=0), atol=1e-8)
    covariance = np.cov(matrix.T)
    np.testing.assert_allclose(np.cov(made.T), covariance, atol=1e-6 * covariance.max())
    assert np.abs(made[:, None] - matrix[None]).sum(axis=2).min() > 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(2, 9))
def test_choices_are_made_as_often_as_they_are_wanted(seed: int, rows: int, count: int) -> None:
    """Exactly, and by the largest score where that is possible."""
    random = np.random.default_rng(seed)
    scores = random.normal(size=(rows, count))
    wanted = apportion(random.integers(0, 50, count) + np.eye(count, dtype=np.int64)[0], rows)
    assert wanted.sum() == rows
    assert np.bincount(choose_by_score(scores, wanted), minlength=count).tolist() == wanted.tolist()
    as_they_are = scores.argmax(axis=1)
    counts = np.bincount(as_they_are, minlength=count)
    assert choose_by_score(scores, counts).tolist() == as_they_are.tolist()


def test_sizes_are_chosen_with_a_margin() -> None:
    """One audit is off by .011: the mean of up to four must be below the limit by its standard error."""
    random = np.random.default_rng(0)

    def chosen_with(rate: float) -> float:
        return float(np.mean([passes(lambda: rate + 0.011 * random.standard_normal()) for _ in range(400)]))

    assert chosen_with(0.52) > 0.95
    assert chosen_with(0.55) < 0.35  # one audit alone would let half of them pass
    assert chosen_with(0.56) < 0.2
    assert chosen_with(0.58) < 0.01


@pytest.mark.thorough
def test_the_search_knows_people_with_several_rows() -> None:
    """Each person's rows are near each other: clusters that tell single rows apart would tell people apart."""
    random = np.random.default_rng(2)
    person = np.repeat(np.arange(400), 5)
    level = random.standard_t(3, size=(400, 3))[person]
    table = pa.table({"person": person, **{f"x{i}": level[:, i] + 0.1 * random.normal(size=2000) for i in range(3)}})
    parts = split_columns(table.drop_columns(["person"]), None, SplitOptions(10, {}, None, "error"))
    by_person = Redrawing.of(parts, person, 10, "auto", random)
    by_row = Redrawing.of(parts, None, 10, "auto", random)
    sizes = [
        find_smallest_size(one, np.arange(2000), 25, np.random.default_rng(seed)) or 2000.0
        for one in (by_person, by_row)
        for seed in range(3)
    ]
    assert np.median(sizes[:3]) > np.median(sizes[3:])


@pytest.mark.thorough
def test_isolated_people_are_hardly_recognised() -> None:
    """The paired audit of all records as one cluster is near what is aimed at; that of small clusters is not."""
    table = income_survey(1500, 10)
    random = np.random.default_rng(0)
    redrawing = Redrawing.of(
        split_columns(table, None, SplitOptions(10, {}, None, "category")), None, 10, "auto", random
    )
    points = redrawing.matrix(redrawing.original(np.arange(1500)), None).astype(np.float64)

    def audited(size: float | None, audits: int) -> float:
        def release(half: np.ndarray, chance: np.random.Generator) -> np.ndarray:
            used = chance.permutation(half)[25:]
            parts = redrawing.redraw(used, len(half), size, chance)
            return redrawing.matrix(parts, None).astype(np.float64)

        # one audit alone is off by .011 to .016: the mean of several is judged
        return float(np.mean([audit_pairs(points, release, seed=seed) for seed in range(audits)]))

    whole = audited(None, 16)
    assert whole <= 0.56  # 48 audits have a mean of .545: three standard errors of 16
    assert audited(40, 4) > whole + 0.02


def test_the_search_of_a_size_tells_how_far_it_is() -> None:
    random = np.random.default_rng(2)
    table = pa.table({f"x{i}": random.standard_t(3, size=600) for i in range(3)})
    parts = split_columns(table, None, SplitOptions(3, {}, None, "error"))
    redrawing = Redrawing.of(parts, None, 3, "auto", random)
    told: list[float] = []
    with progress.watch(None, told.append):
        find_smallest_size(redrawing, np.arange(600), 5, random)
    assert len(told) > 1
    assert told == sorted(told)
    assert 0 <= told[0] <= told[-1] <= 1


def test_a_missing_value_that_a_survey_does_not_have_is_one_of_its_other_numbers() -> None:
    """Of a column of choices it is the commonest one; and where the survey has missing values, it is one of those."""
    random = np.random.default_rng(1)
    numbers = [*random.normal(size=100).tolist(), *[0.0] * 200]  # the commonest is no number like the others
    table = pa.table({"x": numbers, "y": [*numbers[:-20], *[None] * 20], "z": [1] * 90 + [2] * 210})
    columns = split_columns(table, None, SplitOptions(10, {"x": [0.0], "y": [0.0]}, ["z"], "category"))
    missing = pa.array([None], pa.float64())
    x, y, z = (int(NumbersOfSurvey.of(column).choices(missing)[0]) for column in columns)
    assert (columns[0].regular is None, columns[2].regular is None) == (False, True)
    assert x == len(columns[0].outcomes)
    assert y == int(columns[1].codes[-1]) != len(columns[1].outcomes)
    assert z == int(columns[2].codes[-1])
