"""The other faces of a function keep its promises on the awkward tables, and answer as SQL where they must."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.seams.conftest import Benches
from tests.seams.faces import FACES, Faces, look_at, places
from tests.seams.known_faults import KNOWN

FUNCTIONS = [(face, function) for face, functions in FACES.items() for function in functions]

MOST_REFUSED = 2 / 3
"""The share of a function's calls that may be refused: a face has fewer options that let small tables be released."""


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faces]:
    made = Faces(tmp_path_factory.mktemp("faces"))
    yield made
    made.con.close()
    assert os.listdir(made.folder) == []


@pytest.mark.parametrize(("face", "function"), [one for one in FUNCTIONS if one != ("job", "protect_table")])
def test_a_face_keeps_the_promises_of_its_function(face: str, function: str, faces: Faces, benches: Benches) -> None:
    check(face, function, faces, benches, is_quick=True)


@pytest.mark.thorough
@pytest.mark.parametrize(("face", "function"), FUNCTIONS)
def test_a_face_keeps_the_promises_of_its_function_on_many_tables(
    face: str, function: str, faces: Faces, benches: Benches
) -> None:
    check(face, function, faces, benches, is_quick=False)


def check(face: str, function: str, faces: Faces, benches: Benches, is_quick: bool) -> None:
    """Fail with the call for each fault that is not known."""
    outcomes = [
        look_at(faces, benches(place.table), face, place, is_file)
        for place, is_file in places(face, function, is_quick)
    ]
    faults = [
        f"{kind}: {outcome.drawn.statement}\n    {detail}"
        for outcome in outcomes
        for kind, detail in outcome.faults
        if (f"{face}.{function}", kind) not in KNOWN
    ]
    assert not faults, "\n".join(faults)
    if not is_quick:
        refused = sum(outcome.refusal is not None for outcome in outcomes)
        assert refused <= MOST_REFUSED * len(outcomes), f"{refused} of {len(outcomes)} refused"
