"""How the workbench begins and what it lets in: who can read the token, which policy is opened, wrong forms."""

from __future__ import annotations

import asyncio
import stat
import threading
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from starlette.testclient import TestClient

from duckanon.job.errors import FileProblem
from duckanon.workbench import server
from duckanon.workbench.app import application
from duckanon.workbench.policy_text import PolicyText
from duckanon.workbench.site import Site
from tests.workbench.conftest import POLICY


@pytest.mark.thorough
def test_the_token_is_no_argument_of_the_browser(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user of a machine can list the arguments of processes: the browser gets a file that only we can read."""
    said: list[str] = []
    opened: list[tuple[str, str, int, int]] = []
    windows: list[threading.Thread] = []

    def browse(address: str) -> None:
        page = Path(unquote(urlsplit(address).path))
        modes = stat.S_IMODE(page.stat().st_mode), stat.S_IMODE(page.parent.stat().st_mode)
        opened.append((address, page.read_text(), *modes))
        events = said[0].rpartition(" ")[2] + "/events"

        def look() -> None:
            with urllib.request.urlopen(events, timeout=20) as window:
                while page.exists():  # as soon as a window is open, nobody needs it
                    window.readline()

        windows.append(threading.Thread(target=look))
        windows[0].start()

    monkeypatch.setattr(server.webbrowser, "open", browse)
    monkeypatch.setattr(server, "_CLOSED_FOR", 0.0)
    monkeypatch.setattr(
        server, "Site", lambda policy, root: SimpleNamespace(policy=policy, root=root, close=lambda: True)
    )
    server.serve(folder / "policy.toml", None, port=0, open_browser=True, say=said.append)
    windows[0].join(20)
    ((address, page, file_mode, folder_mode),) = opened
    workbench = said[0].rpartition(" ")[2]
    token = workbench.rpartition("/")[2]
    assert len(token) == 32
    assert token not in address
    assert urlsplit(address).scheme == "file"
    assert (file_mode, folder_mode) == (0o600, 0o700)
    assert f'content="0; url={workbench}"' in page
    assert not Path(unquote(urlsplit(address).path)).parent.exists()


@pytest.fixture
def drafts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the sources that were drafted; the draft is a short policy."""
    sources: list[str] = []

    def draft(con: object, source: str, table: str | None, query: None, policy: Path) -> str:
        sources.append(source)
        which = f'table = "{table}"\n' if table else ""
        return POLICY.replace('path = "people.parquet"', f'path = "{Path(source).name}"\n{which}')

    monkeypatch.setattr(server, "draft", draft)
    monkeypatch.setattr(server, "connection", lambda: SimpleNamespace(close=lambda: None))
    return sources


def test_a_file_opens_its_own_policy(tmp_path: Path, drafts: list[str]) -> None:
    """Neither people.csv and people.parquet nor tables of one name in two databases share a policy."""
    said: list[str] = []
    asked = [("people.csv", None), ("people.parquet", None), ("clinic.duckdb", "people"), ("old.duckdb", "people")]
    found = [server.policy_of(str(tmp_path / name), table, said.append)[0] for name, table in asked]
    assert len(set(found)) == 3 + 1
    assert [Path(source).name for source in drafts] == [name for name, _ in asked]
    for (name, table), policy in zip(asked, found, strict=True):
        assert f'path = "{name}"' in policy.read_text()
        assert server.policy_of(str(tmp_path / name), table, said.append)[0] == policy  # not drafted again
    assert len(drafts) == len(asked)
    assert f"{tmp_path / 'people.policy.toml'} is the policy of another table and stays as it is" in said
    (tmp_path / "people_parquet.policy.toml").write_text(found[0].read_text())
    with pytest.raises(
        FileProblem, match=r"it is the policy of another table than \S+people\.parquet; open a policy by"
    ):
        server.policy_of(str(tmp_path / "people.parquet"), None, said.append)
    assert server.policy_of("some.toml", "visits", said.append) == (Path("some.toml"), "visits")


def test_a_file_opens_its_table_of_a_policy_of_several(tmp_path: Path, drafts: list[str]) -> None:
    text = POLICY.replace("[source]", "[tables.first.source]").replace("[target]", "[tables.first.target]")
    for part in ("columns", "method", "promises"):
        text = text.replace(f"[{part}]", f"[tables.first.{part}]")
    other = text.replace("first", "second").replace("people.parquet", "visits.csv").replace("release.", "other.")
    (tmp_path / "visits.policy.toml").write_text(text + other)
    policy, name = server.policy_of(str(tmp_path / "visits.csv"), None, drafts.append)
    assert (policy.name, name) == ("visits.policy.toml", "second")
    assert PolicyText(policy, name).table().source.path == "visits.csv"


@pytest.mark.parametrize("body", [b"seen=\xff\xfe", b"seen=%ff&column=xq&role=drop", b"recipient=\xc3"])
def test_bytes_that_are_no_text_are_refused(client: TestClient, site: Site, body: bytes) -> None:
    for action in ("role", "terms"):
        answer = client.post(f"/token/act/{action}", content=body)
        assert (answer.status_code, answer.text) == (
            400,
            "The form cannot be read as text in UTF-8; nothing was changed.",
        )
    assert site.policy.text == POLICY


def test_a_long_form_is_not_read(site: Site) -> None:
    """After a million bytes nothing more is asked for, whatever length the form says it has."""
    asked, answers = 0, []

    async def receive() -> dict[str, object]:
        nonlocal asked
        asked += 1
        return {"type": "http.request", "body": b"x" * 300_000, "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        answers.append(message)

    headers = [(b"host", b"127.0.0.1:8000"), (b"content-length", b"200000000")]
    path = f"{site.root}/act/role"
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    asyncio.run(application(site)({**scope, "headers": headers}, receive, send))
    assert asked == 4
    assert answers[0]["status"] == 413
    assert answers[1]["body"] == b"The form is longer than 1,000,000 bytes; nothing was changed."
    assert site.policy.text == POLICY
