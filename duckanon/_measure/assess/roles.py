"""The role of every column of a table: by structure and values first, by names second, else undecided.

The rules are asked in the order of `find`; the first that says something counts. No rule says that a column may leave
as it is: only a person knows that.
"""

from __future__ import annotations

from duckanon._measure.assess import keys, relations, rules, uniqueness, weights
from duckanon._measure.assess.findings import PICKS_OUT, Columns, Role, Said, constant_columns, person_reason
from duckanon._measure.assess.keys import Groups
from duckanon._measure.assess.profiles import Profile

_ADDS = 0.001  # growth of the share of unique people, below which a column adds nothing
_STRICTNESS = (Role.SENSITIVE, Role.POSSIBLE, Role.QUASI, Role.UNDECIDED, Role.IDENTIFIER)


def find(profiles: list[Profile], row_count: int, person: str | None = None) -> Columns:
    """Find the roles of a table's columns from a sample that keeps groups of equal values whole.

    `row_count` is that of the whole table; `person` the column that identifies people, where that is known.
    """
    columns = Columns(profiles, row_count)
    columns.ask(rules.constant, rules.direct_identifier, rules.sentences)
    _say_keys(columns, person)
    columns.ask(rules.repeats_key, rules.unique_code, rules.first_names, rules.named_identifier, rules.key_by_name)
    _one_person_key(columns)
    columns.ask(rules.repeats_key, rules.sampling_weight, rules.date_or_period, rules.known_words, rules.age_or_body)
    columns.ask(rules.code_of_person, rules.place_code, rules.named_topic)
    _say_derived(columns)
    columns.ask(rules.picks_out, rules.other_number, rules.few_values)
    _say_growth(columns)
    _say_sources(columns)
    for profile in columns.having(Role.WEIGHT):
        columns.say(profile, rules.telling_weight(profile, columns))
    return columns


def _say_keys(columns: Columns, person: str | None) -> None:
    """Say which columns are keys: one of a person, those as fine as it, and those of groups that people are in."""
    found = keys.find(columns.open, columns.groups)
    named = next((one for one in columns.profiles if person and one.name.lower() == person.lower()), None)
    people = [key for key in found if key.is_person]
    if not people:  # k over groups is at least k over people
        people = sorted((key for key in found if key.is_person is None), key=lambda key: -key.profile.distinct)[:1]
    columns.person = named or _finest(people)
    if columns.person is not None:
        columns.groups.setdefault(columns.person.name, Groups(columns.person))
        key_of_person = next((one for one in found if one.profile is columns.person), None)
        columns.say(columns.person, (Role.PERSON, person_reason(columns.person, key_of_person)))
    for key in found:
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
    for profile, sources in relations.derived(columns.profiles, columns.open, columns.person, apart):
        columns.sources[profile.name] = [source.name for source in sources]
        columns.say(profile, (Role.POSSIBLE, f"follows from {' and '.join(columns.sources[profile.name])}"))


def _say_sources(columns: Columns) -> None:
    """Give a column that follows from others the strictest role of theirs."""
    kinds = {profile.name: profile.kind for profile in columns.profiles}
    for _ in columns.sources:  # one may follow from another that follows
        for name, sources in columns.sources.items():
            told = [columns.roles[source] for source in sources if columns.roles[source] in _STRICTNESS]
            if told and not all(kinds[source] == "date" for source in sources):  # how long tells less than when
                columns.roles[name] = max(told, key=_STRICTNESS.index)


def _say_growth(columns: Columns) -> None:
    """Say by how much the share of unique people grows with each column that may be a quasi-identifier."""
    asked = [one for one in columns.having(Role.POSSIBLE, Role.UNDECIDED) if one.name not in columns.sources]
    columns.growth, share = uniqueness.growth(columns.having(Role.QUASI), asked, columns.person)
    for profile in asked:
        grown, reason = columns.growth[profile.name], columns.reasons[profile.name]
        if columns.roles[profile.name] == Role.UNDECIDED:
            continue
        if grown < _ADDS:
            # where nobody is unique in all of them together, none can be told from the others
            role = Role.UNDECIDED if share >= _ADDS else Role.POSSIBLE
            columns.say(profile, (role, f"{reason}; adds no unique people"))
            continue
        role = Role.QUASI if grown >= PICKS_OUT and not weights.may_be(profile) else Role.POSSIBLE
        columns.say(profile, (role, f"{reason}; adding it makes {100 * grown:.1f} % more of the people unique"))
