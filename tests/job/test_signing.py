"""Signed releases: keys that nobody else may read, and signatures by which a recipient knows who made a release."""

from __future__ import annotations

import base64
import json
import os
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

import duckanon
from duckanon.cli.main import main
from duckanon.job import run, signing
from tests.job.conftest import PEOPLE, POLICY, changed

FORMER, NEW, RECORD = "former.key", "new.key", "release.parquet.record.json"


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory, database: duckdb.DuckDBPyConnection) -> Path:
    """Make two keys, and a release that is signed with the former."""
    folder = tmp_path_factory.mktemp("signed")
    database.execute(f"COPY ({PEOPLE}) TO '{folder}/people.parquet'").fetchall()
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    for name in (FORMER, NEW):
        signing.make_keys(folder / name)
    duckanon.release(folder / "policy.toml", sign=folder / FORMER)
    return folder


@pytest.fixture
def there(signed: Path, monkeypatch: pytest.MonkeyPatch, database: duckdb.DuckDBPyConnection) -> Iterator[Path]:
    """Work in the folder of the release, which stays as it is."""
    monkeypatch.chdir(signed)
    monkeypatch.setattr(run, "connection", database.cursor)
    before = {path.name: path.read_bytes() for path in signed.iterdir()}
    yield signed
    assert {path.name: path.read_bytes() for path in signed.iterdir() if path.name in before} == before


def said(capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(command)
    shown = capsys.readouterr()
    return code, shown.out + shown.err


def test_a_key_is_its_owner_s_and_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    umask = os.umask(0)
    try:
        assert said(capsys, "keys", str(tmp_path / "a.key"))[0] == 0
    finally:
        os.umask(umask)
    assert (tmp_path / "a.key").stat().st_mode & 0o777 == 0o600
    before = (tmp_path / "a.key").read_bytes()
    code, sentence = said(capsys, "keys", str(tmp_path / "a.key"))
    assert (code, "there is a file already" in sentence) == (3, True)
    (tmp_path / "a.key").rename(tmp_path / "elsewhere.key")  # whoever verifies still has a.key.pub
    assert said(capsys, "keys", str(tmp_path / "a.key"))[0] == 3
    assert (tmp_path / "elsewhere.key").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.key.pub", "elsewhere.key"]
    assert said(capsys, "keys", str(tmp_path / "nowhere" / "a.key"))[0] == 3


def test_what_is_signed_is_the_record_as_json_with_sorted_keys(there: Path) -> None:
    record = json.loads(Path(RECORD).read_text(encoding="utf-8"))
    signature = record.pop("signature")
    public = serialization.load_pem_public_key(Path(f"{FORMER}.pub").read_bytes())
    assert isinstance(public, ed25519.Ed25519PublicKey)
    assert public.public_bytes_raw() == base64.b64decode(signature["public_key"])
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    content = b"record of a release by duckanon\n" + text.encode()
    public.verify(base64.b64decode(signature["record"]), content)
    with pytest.raises(InvalidSignature):
        public.verify(base64.b64decode(signature["record"]), content.replace(b'"rows":240', b'"rows":241'))


def test_a_release_verifies_with_the_key_that_signed_it(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The former key is still trusted beside the new one, as another option or in one file."""
    Path("trusted.pem").write_text("".join(Path(f"{name}.pub").read_text() for name in (NEW, FORMER)))
    for keys in (
        ["--key", f"{FORMER}.pub"],
        ["--key", f"{NEW}.pub", "--key", f"{FORMER}.pub"],
        ["--key", "trusted.pem"],
    ):
        code, words = said(capsys, "verify", "release.parquet", *keys)
        assert (code, "record: signature: confirmed" in words) == (0, True)
    code, words = said(capsys, "verify", "release.parquet")
    assert (code, "record: signature: not in the file" in words) == (0, True)  # who that is, nobody said
    code, words = said(capsys, "verify", "release.parquet", "--key", f"{NEW}.pub")
    assert (code, "none of those that were given" in words) == (1, True)


def test_a_record_without_a_signature_is_refused_where_a_key_is_given(
    there: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads(Path(RECORD).read_text(encoding="utf-8"))
    for name, change in (
        ("the record is not signed", lambda one: one.pop("signature")),
        ("changed after it was signed", lambda one: one.update(warnings=["all is well"])),
        ("changed after it was signed", lambda one: one["signature"].pop("record")),
        ("changed after it was signed", lambda one: one["signature"].update(record="")),
        ("changed after it was signed", lambda one: one["signature"].update(record="no base64!")),
        ("changed after it was signed", lambda one: one["signature"].update(copy="AAAA")),
        ("changed after it was signed", lambda one: one["signature"].update(record=one["signature"]["copy"])),
        ("none of those that were given", lambda one: one["signature"].update(public_key="AAAA")),
    ):
        forged = json.loads(json.dumps(record))
        change(forged)
        (tmp_path / "forged.json").write_text(json.dumps(forged), encoding="utf-8")
        command = ["verify", "release.parquet", "--record", str(tmp_path / "forged.json"), "--key", f"{FORMER}.pub"]
        code, words = said(capsys, *command)
        is_damaged = forged.get("signature", {}).get("record") == ""
        assert (code, name in words) == ((3, False) if is_damaged else (1, True))
        if "signature" in forged:  # it contradicts the record, whoever is trusted
            assert said(capsys, *command[:-2])[0] == code


def test_a_recipient_s_copy_has_nothing_of_the_original_and_a_signature_of_its_own(
    there: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "recipient.zip"
    assert said(capsys, "evidence", "policy.toml", "--to", str(target), "--for-recipients")[0] == 0
    with zipfile.ZipFile(target) as parts:
        assert set(parts.namelist()) == {"README.txt", "public_key.pem", "record.json", "sha256.txt"}
        parts.extractall(tmp_path)
    assert (tmp_path / "public_key.pem").read_text() == Path(f"{FORMER}.pub").read_text()
    full, copied = (json.loads(path.read_text(encoding="utf-8")) for path in (Path(RECORD), tmp_path / "record.json"))
    (table,) = copied["tables"]
    assert full["tables"][0].keys() - table.keys() == {"rows", "people", "sha256", "suppressed"}
    assert full["tables"][0]["sha256"] not in json.dumps(copied)
    assert set(copied["signature"]) == {"public_key", "copy"}
    command = ["verify", "release.parquet", "--record", str(tmp_path / "record.json"), "--key", f"{FORMER}.pub"]
    code, words = said(capsys, *command)
    assert (code, "record: signature: confirmed" in words) == (0, True)
    table["promises"][0]["words"] = "Every class has many people."
    (tmp_path / "record.json").write_text(json.dumps(copied), encoding="utf-8")
    code, words = said(capsys, *command)
    assert (code, "changed after it was signed" in words) == (1, True)


def test_what_is_no_key_is_a_sentence_before_anything_is_read(
    there: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    secret = serialization.BestAvailableEncryption(b"secret")
    others = {
        "rsa.key": rsa.generate_private_key(65537, 2048).private_bytes(pem, pkcs8, serialization.NoEncryption()),
        "locked.key": ed25519.Ed25519PrivateKey.generate().private_bytes(pem, pkcs8, secret),
        "empty.key": b"",
        "noise.key": bytes(range(256)),
    }
    for name, content in others.items():
        (tmp_path / name).write_bytes(content)
    for name in (*(str(tmp_path / name) for name in others), f"{FORMER}.pub", "nothing.key"):
        code, sentence = said(capsys, "release", "policy.toml", "--sign", name, "--to", str(tmp_path / "r.parquet"))
        assert (code, sentence.count("\n"), "key" in sentence) == (3, 1, True), sentence
        assert not (tmp_path / "r.parquet").exists()
        if name != f"{FORMER}.pub":
            code, sentence = said(capsys, "verify", "release.parquet", "--key", name)
            assert (code, sentence.count("\n"), "key" in sentence) == (3, 1, True), sentence
    code, sentence = said(capsys, "verify", "release.parquet", "--key", FORMER)
    assert (code, "public key" in sentence) == (3, True)


def test_without_the_package_there_is_one_sentence(
    there: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.setitem(sys.modules, name, None)  # as where it is not installed
    for command in (
        ["keys", "other.key"],
        ["release", "policy.toml", "--sign", FORMER],
        ["verify", "release.parquet", "--key", f"{FORMER}.pub"],
    ):
        code, sentence = said(capsys, *command)
        assert (code, sentence.count("\n"), "pip install 'duckanon[sign]'" in sentence) == (3, 1, True), sentence
    code, words = said(capsys, "verify", "release.parquet")  # which needs no key
    assert (code, "record: signature: not in the file" in words) == (0, True)


def test_a_key_is_neither_overwritten_nor_left_open(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    signing.make_keys(folder / "key.parquet")
    before = (folder / "key.parquet").read_bytes()
    policy = changed(folder, ("release.parquet", "key.parquet"))
    code, sentence = said(capsys, "release", str(policy), "--sign", "key.parquet")
    assert (code, "must not overwrite it" in sentence) == (3, True)
    assert (folder / "key.parquet").read_bytes() == before
    (folder / "key.parquet").chmod(0o644)
    record = duckanon.release(changed(folder), sign=folder / "key.parquet")
    assert any("key that signs may be read" in warning for warning in record["warnings"])
