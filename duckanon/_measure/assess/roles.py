"""The role of every column of a table: by structure and values first, by names second, else undecided.

The rules are asked in the order of `find`; the first that says something counts. No rule says that a column may leave
as it is: only a person knows that.

Detect sampling weights, as opposed to body weights and amounts.

Rules for the role of one column, from its values and its name; each returns a role and its reason, or None.

By how much the share of unique people grows with each column.
"""

from __future__ import annotations

import itertools

import numpy as np

from duckanon._core.common import progress
from duckanon._core.common.arrays import Array
from duckanon._core.common.row_keys import group_keys, order_keys, pack_columns
from duckanon._measure.assess import keys, profiles, relations, vocabulary
from duckanon._measure.assess.keys import (
    CONSTANT,
    PICKS_OUT,
    Columns,
    Groups,
    Role,
    Said,
    constant_columns,
    person_reason,
)
from duckanon._measure.assess.profiles import Profile

_MOST_PEOPLE = 9e9
_MOST_STRATA = 15  # columns of few values that are tried as strata, two together


def role_of(
    profile: Profile,
    row_count: int,
    households: list[Groups],
    coarse: list[Profile],
    weights: list[Profile],
    has_heights: bool,
) -> Said:
    """Return the role of a column that may be a sampling weight, and why; None where it is none.

    `coarse` columns, of few values, may be strata; `weights` are known to be some. With `has_heights` another column is
    distributed like heights of people: a weight beside it is one of bodies.
    """
    if not _is_positive(profile, row_count):
        return None
    if any(_is_proportional(profile, one) for one in weights):
        return Role.WEIGHT, "proportional to another weight"
    if "weight" not in profile.topics:
        if profile.topics or not may_be(profile):
            return None
        strata = _strata(profile, households, coarse)
        reason = f"like a weight: fixed by {strata}; an average of amounts looks the same"
        return (Role.UNDECIDED, reason) if strata else None
    if profile.topics & (vocabulary.CONFIDENTIAL | {"birth", "age"}):
        return None
    if profiles.is_body(profile):
        return None if has_heights else (Role.UNDECIDED, "named like a weight, distributed like body weights")
    numbers = profile.numeric
    is_fixed = any(own.fixes(profile) for own in households) or profile.distinct <= min(50, profile.known / 50)
    if numbers.heaped >= 0.6 or not (numbers.variation > 0.45 or is_fixed):
        return Role.UNDECIDED, "named like a weight, but distributed like a measurement"
    total = numbers.mean * row_count
    return Role.WEIGHT, f"named like a sampling weight; positive, without gaps, adds up to {total:.3g}"


def may_be(profile: Profile) -> bool:
    """Tell whether a column without a name may be a weight: positive with odd decimals, a mean above 1."""
    if profile.kind != "numeric" or profile.missing or profile.is_integer or profiles.is_age(profile):
        return False
    numbers = profile.numeric
    return numbers.lowest > 0 and numbers.mean > 1.5 and numbers.variation < 1.5 and numbers.decimals[2] > 0.5


def _is_positive(profile: Profile, row_count: int) -> bool:
    if profile.kind != "numeric" or profile.missing or profile.distinct < 3:
        return False
    numbers = profile.numeric
    return numbers.lowest > 0 and numbers.variation < 3 and numbers.mean * row_count < _MOST_PEOPLE


def _is_proportional(profile: Profile, other: Profile) -> bool:
    numbers, other_numbers = profile.numbers, other.numbers
    if numbers is None or other_numbers is None or profile.distinct <= 8 or profile.is_integer:
        return False
    return bool(abs(np.corrcoef(numbers, other_numbers)[0, 1]) > 0.9999)


def _strata(profile: Profile, households: list[Groups], coarse: list[Profile]) -> str | None:
    """Return what fixes a column: a household or two columns of few values."""
    if not 8 < profile.distinct <= profile.known / 4:
        return None
    for groups in households:
        if profile.distinct <= profile.known / 50 and groups.fixes(profile):
            return groups.key.name
    for pair in itertools.combinations([column for column in coarse if column is not profile][:_MOST_STRATA], 2):
        coded = [(column.codes + 1, column.distinct + 1) for column in pair]
        order, ordered = order_keys(pack_columns(coded, len(profile.codes))[0])
        same = np.diff(ordered) == 0
        if same.mean() < 0.9:
            continue
        agree = (np.diff(profile.codes[order]) == 0)[same].mean()
        if (agree - profile.agreement) / (1 - profile.agreement) >= CONSTANT:
            return f"{pair[0].name} and {pair[1].name}"
    return None


_FEW = 60  # different values of a column of few values, at most
_COARSE = 12  # values of an amount that is coarse enough for others to know it, at most
_INDIRECT = frozenset({"geographic_subdivision", "zip", "date", "age_over_89", "unique_code"})
"""Categories of anon.direct_identifiers that name nobody by themselves."""


def constant(profile: Profile, columns: Columns) -> Said:
    """Find columns of one value."""
    is_one = profile.distinct <= 1 and profile.missing in (0, 1) and profile.distinct_share * columns.row_count < 2
    return (Role.CONSTANT, "has the same value in every row") if is_one else None


def direct_identifier(profile: Profile, columns: Columns) -> Said:
    """Find what anon.direct_identifiers calls a name, a phone, an account and the like."""
    named = [category for category in profile.categories if category not in _INDIRECT]
    return (Role.IDENTIFIER, f"looks like {', '.join(named)}: remove it") if named and profile.distinct > 2 else None


def sentences(profile: Profile, columns: Columns) -> Said:
    """Find free text."""
    if profile.kind != "text" or not profile.known:
        return None
    words = profile.words
    is_various = profile.distinct > 0.3 * profile.known and profile.distinct > 30 and words.length_deviation > 6
    is_named = "text" in profile.topics and words.per_value > 2
    if (words.per_value >= 4 and is_various) or (words.per_value >= 6 and profile.distinct > 100) or is_named:
        return Role.IDENTIFIER, "free text: remove it, or have it reviewed"
    return None


def repeats_key(profile: Profile, columns: Columns) -> Said:
    """Find other writings of a key."""
    for key in columns.having(Role.PERSON, Role.HOUSEHOLD, Role.IDENTIFIER):
        if keys.repeats(profile, key, columns.groups.setdefault(key.name, Groups(key))):
            return Role.IDENTIFIER, f"follows from {key.name} and reveals it: remove it"
    person = columns.person
    is_fine = person is not None and profile.kind == "text" and profile.distinct >= 0.5 * person.distinct > 10
    if is_fine and columns.is_constant_for_person(profile):
        return Role.IDENTIFIER, "follows from the person key and nearly determines it: remove it"
    return None


def unique_code(profile: Profile, columns: Columns) -> Said:
    """Find codes that hardly repeat: texts without sentences, whole numbers that count or are evenly spread."""
    if profile.distinct_share < 0.9 or profile.known < 10:
        return None
    is_code = profile.kind == "text"
    numbers = profile.numeric if profile.is_integer and profile.distinct_share > 0.995 else None
    is_year = numbers is not None and 1900 <= numbers.lowest <= numbers.highest <= 2100
    if numbers is not None and not is_year and not profiles.is_age(profile):
        is_even = numbers.highest > profile.known and numbers.unevenness < 0.06
        is_code = not numbers.negative and (numbers.density > 0.5 or numbers.ascending > 0.97)
        is_code = is_code or "person key" in profile.topics
        is_code = is_code or (is_even and not profile.topics & vocabulary.CONFIDENTIAL)
    reason = f"{profile.distinct_share:.0%} of its values are distinct, built like a code: remove it"
    return (Role.IDENTIFIER, reason) if is_code else None


def first_names(profile: Profile, columns: Columns) -> Said:
    """Find names of people."""
    if profile.kind != "text" or profile.words.per_value >= 5:
        return None
    if vocabulary.tells_names(profile.plain_values):
        return Role.IDENTIFIER, "values are first names: remove it"
    is_many = profile.distinct > 100 and profile.distinct > 0.05 * profile.known and profile.words.with_digits < 0.05
    return (Role.IDENTIFIER, "many different words without digits, like names: remove it") if is_many else None


def identifier_by_name(profile: Profile, columns: Columns) -> Said:
    """Take the word of a name for names, contacts and official numbers."""
    topics = [topic for topic in ("name", "contact") if topic in profile.topics]
    is_many = profile.distinct > 20 if profile.kind == "text" else profile.distinct_share > 0.3
    is_wide = profile.kind == "numeric" and profile.numeric.median >= 1e5 and profile.distinct > 2
    if topics and profile.kind in ("text", "numeric") and (is_many or ("contact" in topics and is_wide)):
        return Role.IDENTIFIER, f"its name suggests a {topics[0]}: remove it"
    return None


def key_by_name(profile: Profile, columns: Columns) -> Said:
    """Take the word of a name for a key that the structure does not show, where it is about nothing else."""
    key_topics = profile.topics & {"person key", "household key"}
    other_topics = profile.topics & (vocabulary.KNOWN_BY_OTHERS | vocabulary.CONFIDENTIAL | {"weight"})
    if not key_topics or other_topics or not (profile.kind == "text" or profile.is_integer) or profiles.is_age(profile):
        return None
    if profile.distinct < 3 or (profile.distinct <= 20 and profile.distinct_share < 0.05):
        return None
    repeats = profile.known >= 1.1 * profile.distinct
    if "person key" in key_topics and repeats and columns.person is None and profile.distinct_share < 0.95:
        columns.person = profile
        columns.groups.setdefault(profile.name, Groups(profile))
        return Role.PERSON, person_reason(profile)
    role = Role.HOUSEHOLD if "household key" in key_topics and repeats else Role.IDENTIFIER
    return role, "named like the key of a person or a household: remove it"


def sampling_weight(profile: Profile, columns: Columns) -> Said:
    """Find sampling weights."""
    groups = [columns.groups[key.name] for key in columns.having(Role.HOUSEHOLD) if key.name in columns.groups]
    coarse = [one for one in columns.open if 2 <= one.distinct <= _FEW]
    has_heights = any(
        other.kind == "numeric" and profiles.is_height(other) for other in columns.profiles if other is not profile
    )
    return role_of(profile, columns.row_count, groups, coarse, columns.having(Role.WEIGHT), has_heights)


def telling_weight(profile: Profile, columns: Columns) -> Said:
    """Find weights that nearly tell a quasi-identifier."""
    names = [
        column.name
        for column in columns.having(Role.QUASI, Role.POSSIBLE)
        if column.agreement < 0.9 and column.distinct <= _FEW and relations.tells(profile, column)
    ]
    reason = f"a weight that nearly reveals {', '.join(names)}: round it before a release"
    return (Role.UNDECIDED, reason) if names else None


def date_or_period(profile: Profile, columns: Columns) -> Said:
    """Find dates and periods."""
    if profile.kind not in ("date", "period"):
        return None
    if columns.is_constant_for_person(profile):
        return Role.QUASI, "a date that is constant for a person"
    return (Role.QUASI, "a date, which others may know") if profile.kind == "date" else (Role.POSSIBLE, "a period")


def find_known_words(profile: Profile, columns: Columns) -> Said:
    """Find values that are words for sex, marital status, education or countries, and codes of diseases."""
    if profile.has_icd_codes:
        return Role.SENSITIVE, "values are codes of diseases"
    if profile.kind == "text":
        for meaning, test in (
            ("sex", vocabulary.tells_sex),
            ("marital status", vocabulary.tells_marital_status),
            ("education", vocabulary.tells_education),
            ("countries, nationalities or states", vocabulary.tells_country),
        ):
            if test(profile.plain_values):
                return Role.QUASI, f"values are words for {meaning}"
    alike = [one for one in columns.profiles if one.kind == "numeric" and profiles.is_sex(one)]
    is_coded = profile in alike and len(alike) == 1 and not profile.topics & vocabulary.CONFIDENTIAL
    # A column that never repeats within a key is a term or a line number.
    if is_coded and not any(own.pairs > 20 and own.agreement(profile) < 0.02 for own in columns.groups.values()):
        return Role.QUASI, "codes 1 and 2 about equally often, like sex"
    return None


def age_or_body(profile: Profile, columns: Columns) -> Said:
    """Find ages, weights and heights by their spread."""
    if profile.topics & vocabulary.CONFIDENTIAL:
        return None
    if profiles.is_age(profile):
        return Role.QUASI, "distributed like ages"
    return (Role.QUASI, "distributed like body weights or heights") if profiles.is_body(profile) else None


def code_of_person(profile: Profile, columns: Columns) -> Said:
    """Find codes of many values that a person keeps: places, employers, schools."""
    if columns.person is None or profile.topics & vocabulary.CONFIDENTIAL or profiles.is_amount(profile):
        return None
    is_code = profile.kind == "text" or profile.is_integer
    if not is_code or profile.distinct < 20 or not columns.is_constant_for_person(profile):
        return None
    if "household key" in profile.topics:
        return Role.HOUSEHOLD, "constant for a person, and named like a group: remove it"
    return Role.QUASI, "constant for a person, with many values"


def place_code(profile: Profile, columns: Columns) -> Said:
    """Find codes of digits that many share."""
    words = profile.words if profile.kind == "text" and profile.distinct > 20 else None
    is_digits = words is not None and words.top_shape > 0.95 and words.with_digits == 1 and words.with_letters == 0
    is_shared = profile.distinct < 0.2 * profile.known
    reason = "digits of one length that many people share, like place codes"
    return (Role.QUASI, reason) if is_digits and is_shared else None


def topic_by_name(profile: Profile, columns: Columns) -> Said:
    """Take the word of a name, where values do not contradict it."""
    known, confidential = (
        [topic for topic in profile.topics if topic in kind]
        for kind in (vocabulary.KNOWN_BY_OTHERS, vocabulary.CONFIDENTIAL)
    )
    if known and profile.distinct > 1:
        is_coarse = profile.distinct < max(2000, profile.known / 2) or "place" in known
        if confidential or is_coarse or not profiles.is_amount(profile):
            return Role.QUASI, f"its name suggests {' and '.join(sorted(known + confidential))}"
    if confidential and not known:
        if confidential == ["money"] and (profile.kind != "numeric" or profile.distinct <= _COARSE):
            return Role.POSSIBLE, "named like money, but with few values"
        if profile.distinct <= _FEW or profile.kind == "numeric":
            return Role.SENSITIVE, f"its name suggests {' and '.join(sorted(confidential))}"
    return None


def picks_out(profile: Profile, columns: Columns) -> Said:
    """Find columns in which many people are unique."""
    if profile.unique_fraction < PICKS_OUT or profiles.is_amount(profile) or profile.distinct <= 1:
        return None
    is_large = profile.is_integer and profile.numeric.highest > 1e4
    if is_large or may_be(profile):
        return Role.UNDECIDED, "mostly distinct numbers: a code, a measurement or an amount"
    return Role.QUASI, "it singles people out by itself"


def other_number(profile: Profile, columns: Columns) -> Said:
    """Judge numbers of many values by their spread."""
    if profile.kind != "numeric" or profile.distinct <= 25:
        return None
    if profiles.is_money(profile):
        return Role.SENSITIVE, "amounts: a heavy tail with zeros or cents"
    if profile.distinct <= _FEW:
        return None
    if profile.is_integer and profile.distinct_share > 0.5 and profile.numeric.highest > 1e4:
        return Role.UNDECIDED, "mostly distinct whole numbers: a code or an amount"
    return Role.POSSIBLE, "whole numbers: amounts or codes" if profile.is_integer else "a measurement with many values"


def few_values(profile: Profile, columns: Columns) -> Said:
    """Say that a column of few values may be a quasi-identifier."""
    if profile.top_share > 0.995:
        return Role.UNDECIDED, "nearly the same value in every row"
    if profile.distinct <= _FEW or profile.distinct < 0.05 * profile.known:
        return Role.POSSIBLE, "few values"
    return Role.UNDECIDED, "no hint in its name or values"


_PEOPLE = 5000
_WIDE = 60  # columns, above which fewer people are looked at
_HALF = 0.5
_MOST_REMOVED = 12  # columns that added nothing when they came, and are measured by what is lost without them


def growth(known: list[Profile], asked: list[Profile], person: Profile | None) -> tuple[dict[str, float], float]:
    """Return how much each column `asked` adds to the share of unique people, and the share with all that are coarse.

    One column after the other is added to the known quasi-identifiers, the one first with which most people are unique.
    Where half of the people are unique already, a further column can hardly add: it is added to fewer columns, those of
    few values first. The first columns add nothing where many are needed: of those it is what the others lose without
    them. One row of each person is looked at.
    """
    rows = _some_people(known + asked, person)
    codes = {profile.name: profile.codes[rows] for profile in known + asked}
    classes, share = np.zeros(len(rows), np.int64), 0.0
    added = []
    for profile in sorted(known, key=lambda one: one.distinct):
        joined, more = _join_codes(classes, codes[profile.name])
        if more <= _HALF:
            classes, share = joined, more
            added.append(profile.name)
    grown: dict[str, float] = {}
    waiting = list(asked)
    while waiting:
        progress.check()
        tried = [(*_join_codes(classes, codes[profile.name]), profile) for profile in waiting]
        too_fine = {profile.name: more - share for _, more, profile in tried if more > _HALF}
        grown |= too_fine
        joined, more, best = max((one for one in tried if one[1] <= _HALF), key=lambda one: one[1], default=tried[0])
        if best.name not in too_fine:
            grown[best.name], classes, share = more - share, joined, more
            added.append(best.name)
        waiting = [profile for profile in waiting if profile.name not in grown]
    for name in [name for name in added if grown.get(name) == 0][:_MOST_REMOVED]:  # the first of many adds little
        classes, fewer = np.zeros(len(rows), np.int64), 0.0
        for other in added:
            if other != name:
                classes, fewer = _join_codes(classes, codes[other])
        grown[name] = max(0.0, share - fewer)
    return grown, share


def _some_people(profiles: list[Profile], person: Profile | None) -> Array:
    count = _PEOPLE if len(profiles) <= _WIDE else _PEOPLE * _WIDE // len(profiles)
    rows = np.arange(len(profiles[0].codes)) if profiles else np.zeros(0, np.int64)
    if person is not None:
        rows = np.unique(person.codes, return_index=True)[1]
    return np.random.default_rng(1).permutation(rows)[:count]


def _join_codes(classes: Array, codes: Array) -> tuple[Array, float]:
    keys, _ = pack_columns([(codes + 1, int(codes.max(initial=0)) + 2)], len(codes), classes)
    groups = group_keys(keys)
    return groups.codes, float((groups.counts == 1).sum() / max(len(codes), 1))


_ADDS = 0.001  # growth of the share of unique people, below which a column adds nothing
_STRICTNESS = (Role.SENSITIVE, Role.POSSIBLE, Role.QUASI, Role.UNDECIDED, Role.IDENTIFIER)


def find(profiles: list[Profile], row_count: int, person: str | None = None) -> Columns:
    """Find the roles of a table's columns from a sample that keeps groups of equal values whole.

    `row_count` is that of the whole table; `person` the column that identifies people, where that is known.
    """
    columns = Columns(profiles, row_count)
    columns.ask(constant, direct_identifier, sentences)
    _say_keys(columns, person)
    columns.ask(repeats_key, unique_code, first_names, identifier_by_name, key_by_name)
    _one_person_key(columns)
    columns.ask(repeats_key, sampling_weight, date_or_period, find_known_words, age_or_body)
    columns.ask(code_of_person, place_code, topic_by_name)
    _say_derived(columns)
    columns.ask(picks_out, other_number, few_values)
    _say_growth(columns)
    _say_sources(columns)
    for profile in columns.having(Role.WEIGHT):
        columns.say(profile, telling_weight(profile, columns))
    return columns


def _say_keys(columns: Columns, person: str | None) -> None:
    """Say which columns are keys: one of a person, those as fine as it, and those of groups that people are in."""
    table_keys = keys.find(columns.open, columns.groups)
    named = next((one for one in columns.profiles if person and one.name.lower() == person.lower()), None)
    people = [key for key in table_keys if key.is_person]
    if not people:  # k over groups is at least k over people
        people = sorted((key for key in table_keys if key.is_person is None), key=lambda key: -key.profile.distinct)[:1]
    columns.person = named or _finest(people)
    if columns.person is not None:
        columns.groups.setdefault(columns.person.name, Groups(columns.person))
        key_of_person = next((one for one in table_keys if one.profile is columns.person), None)
        columns.say(columns.person, (Role.PERSON, person_reason(columns.person, key_of_person)))
    for key in table_keys:
        if key.profile is not columns.person:
            columns.say(key.profile, _key_role(key, columns, key in people))


def _finest(people: list[keys.Key]) -> Profile | None:
    """Return the person key: of those with the most values the one that is most like a code."""
    most = max((key.profile.distinct for key in people), default=0)

    def rank(profile: Profile) -> float:
        is_code = profile.kind == "numeric" or profile.words.top_shape > 0.9
        worse = 5 * ("name" in profile.topics) + 4 * ("contact" in profile.topics)
        return 3 * ("person key" in profile.topics) + 2 * (profile.kind == "numeric") + is_code - worse

    return max((key.profile for key in people if key.profile.distinct >= 0.9 * most), key=rank, default=None)


def _key_role(key: keys.Key, columns: Columns, is_person: bool) -> Said:
    seen = f"repeats, and {constant_columns(key)}; {key.reason}"
    if columns.person is not None and (is_person or key.profile.distinct >= 0.95 * columns.person.distinct):
        if key.profile.distinct >= 0.5 * columns.person.distinct and columns.is_constant_for_person(key.profile):
            return Role.IDENTIFIER, f"as fine-grained as the person key: {seen}; remove it"
        if key.is_person:
            return Role.HOUSEHOLD, f"{seen}; coarser than the person key: remove it"
    is_named = "household key" in key.profile.topics
    if keys.is_large_group(key, columns.groups[key.profile.name]) and not is_named:
        return Role.QUASI, "a code of large groups, such as places"
    return Role.HOUSEHOLD, f"{seen}: remove it, or replace it by a pseudonym"


def _one_person_key(columns: Columns) -> None:
    """Of codes that differ in every row, call the one a person key that is most like one: every row is a person."""
    if columns.person is not None:
        return
    codes = [
        profile
        for profile in columns.having(Role.IDENTIFIER)
        if "built like a code" in columns.reasons[profile.name] and not profile.topics & {"name", "contact"}
    ]
    best = max(codes, key=lambda one: ("person key" in one.topics, one.kind == "numeric"), default=None)
    if best is not None:
        columns.say(best, (Role.PERSON, f"{columns.reasons[best.name]}, or pass it as person: every row is one person"))


def _say_derived(columns: Columns) -> None:
    """Note the columns that follow from others; their roles are said when all others have one."""
    apart = columns.having(Role.PERSON, Role.HOUSEHOLD, Role.WEIGHT)
    for profile, sources in relations.find_derived(columns.profiles, columns.open, columns.person, apart):
        columns.sources[profile.name] = [source.name for source in sources]
        columns.say(profile, (Role.POSSIBLE, f"follows from {' and '.join(columns.sources[profile.name])}"))


def _say_sources(columns: Columns) -> None:
    """Give a column that follows from others the strictest role of theirs."""
    kinds = {profile.name: profile.kind for profile in columns.profiles}
    for _ in columns.sources:  # one may follow from another that follows
        for name, sources in columns.sources.items():
            roles = [columns.roles[source] for source in sources if columns.roles[source] in _STRICTNESS]
            if roles and not all(kinds[source] == "date" for source in sources):  # how long tells less than when
                columns.roles[name] = max(roles, key=_STRICTNESS.index)


def _say_growth(columns: Columns) -> None:
    """Say by how much the share of unique people grows with each column that may be a quasi-identifier."""
    asked = [one for one in columns.having(Role.POSSIBLE, Role.UNDECIDED) if one.name not in columns.sources]
    columns.growth, share = growth(columns.having(Role.QUASI), asked, columns.person)
    for profile in asked:
        grown, reason = columns.growth[profile.name], columns.reasons[profile.name]
        if columns.roles[profile.name] == Role.UNDECIDED:
            continue
        if grown < _ADDS:
            # where nobody is unique in all of them together, none can be told from the others
            role = Role.UNDECIDED if share >= _ADDS else Role.POSSIBLE
            columns.say(profile, (role, f"{reason}; adds no unique people"))
            continue
        role = Role.QUASI if grown >= PICKS_OUT and not may_be(profile) else Role.POSSIBLE
        columns.say(profile, (role, f"{reason}; adding it makes {100 * grown:.1f} % more of the people unique"))
