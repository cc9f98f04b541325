"""Signatures of records by Ed25519: who made a release, and that nobody has changed its record since.

What is signed is the record without its signature, as JSON with sorted keys and without spaces. It has the hashes of
the released files and of the report, so the signature covers these too.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from duckanon._core.common.release_record import KEY_WARNING, Record, SignatureEntry
from duckanon.job.errors import FileProblem

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Outcome: TypeAlias = Literal["confirmed", "differs", "unknown"]

_PURPOSE = b"record of a release by duckanon\n"
"""Before the signed bytes: no other text that the same key signs can be taken for a record."""
_OF_ORIGINAL = ("rows", "people", "sha256", "suppressed", "memory")
"""Parts of a table's entry that only those who have the original may see; memory is estimated by its rows."""
_PUBLIC = re.compile(r"-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----")


def make_keys(path: Path) -> str:
    """Write a new key, which only its owner may read, and its public key beside it; return the public key's name."""
    library, public = _library(), path.with_name(f"{path.name}.pub")
    key, serialization = library.ed25519.Ed25519PrivateKey.generate(), library.serialization
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    if public.exists():  # of a key that is elsewhere
        raise FileProblem(f"{public}: there is a file already; name another key, or remove it.")
    for target, content, mode in (
        (path, key.private_bytes(*form), 0o600),
        (public, public_pem(name_of(_raw(key))).encode(), 0o644),
    ):
        try:
            with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)
        except FileExistsError:
            raise FileProblem(f"{target}: there is a file already; name another key, or remove it.") from None
        except OSError as error:
            raise FileProblem(f"{target}: the key cannot be written ({error.strerror}).") from None
    return str(public)


def read_key(path: Path) -> Ed25519PrivateKey:
    """Read a key that signs; errors tell nothing of it."""
    library = _library()
    try:
        key = library.serialization.load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        raise FileProblem(f"{path}: the key that signs cannot be read ({error.strerror}).") from None
    except (ValueError, TypeError, library.exceptions.UnsupportedAlgorithm):
        key = None
    if not isinstance(key, library.ed25519.Ed25519PrivateKey):
        raise FileProblem(f"{path}: it is no private key of Ed25519; `duckanon keys` makes one.")
    return cast("Ed25519PrivateKey", key)


def warnings(path: Path) -> list[str]:
    """Say where others than this user may read a key that signs; Windows does not tell by the mode of a file."""
    if os.name == "nt" or not path.stat().st_mode & 0o077:
        return []
    return [f"the key that signs {KEY_WARNING}"]


def read_public_keys(paths: Sequence[str | Path]) -> list[str]:
    """Return the public keys of files, each of which may have several, one below the other."""
    names: list[str] = []
    library: Any = _library() if paths else None
    for path in paths:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise FileProblem(f"{path}: the public key cannot be read ({why}).") from None
        blocks = _PUBLIC.findall(text)
        try:
            keys = [library.serialization.load_pem_public_key(block.encode()) for block in blocks]
        except (ValueError, library.exceptions.UnsupportedAlgorithm):
            keys = []
        if not keys or not all(isinstance(key, library.ed25519.Ed25519PublicKey) for key in keys):
            raise FileProblem(f"{path}: it has no public key of Ed25519, or others beside it; name the file in .pub.")
        names += [name_of(key.public_bytes_raw()) for key in keys]
    return names


def name_of(raw: bytes) -> str:
    """Return what a record calls a public key."""
    return base64.b64encode(raw).decode()


def public_pem(name: str) -> str:
    """Write a public key as the file that `read_public_keys` reads."""
    library = _library()
    serialization, key_type = library.serialization, library.ed25519.Ed25519PublicKey
    key = key_type.from_public_bytes(base64.b64decode(name))
    form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return cast(bytes, key.public_bytes(*form)).decode()


def abbreviate_key(name: str) -> str:
    """Return the few letters by which people tell public keys apart."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def copy_for_recipients(record: Record) -> Record:
    """Return a record without what it says of the original, and without the signature of that."""
    tables = [{name: part for name, part in table.items() if name not in _OF_ORIGINAL} for table in record["tables"]]
    copy: dict[str, Any] = {**record, "tables": tables}
    if "signature" in record:
        copy["signature"] = {name: part for name, part in record["signature"].items() if name != "record"}
    return cast(Record, copy)


def bytes_to_sign(plain: Record) -> bytes:
    """Return what is signed of a record as it is written."""
    unsigned = {name: part for name, part in plain.items() if name != "signature"}
    text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return _PURPOSE + text.encode()


def sign(plain: Record, key: Ed25519PrivateKey) -> SignatureEntry:
    """Sign a record as it is written, and its copy for recipients."""
    parts = [plain, copy_for_recipients(plain)]
    of_record, of_copy = (base64.b64encode(key.sign(bytes_to_sign(one))).decode() for one in parts)
    return {"public_key": name_of(_raw(key)), "record": of_record, "copy": of_copy}


def check(record: Record, trusted_keys: Sequence[str]) -> Iterator[tuple[Outcome, str]]:
    """Say whether a record is signed, by one of the trusted keys where some are named, and unchanged since."""
    entry = record.get("signature")
    if entry is None:
        if trusted_keys:
            yield "differs", "the record is not signed"
        return
    who = f"the key {abbreviate_key(entry['public_key'])}"
    if trusted_keys and entry["public_key"] not in trusted_keys:
        yield "differs", f"the record is signed by {who}, which is none of those that were given"
        return
    try:
        _library()
    except FileProblem as error:
        yield "unknown", f"the record is signed by {who}, which was not looked at: {str(error).rstrip('.')}"
        return
    copied = copy_for_recipients(record)
    is_copy = record == copied
    signatures = [(copied, entry["copy"]), *([] if is_copy else [(record, entry.get("record", ""))])]
    if not all(_is_signed(one, entry["public_key"], signature) for one, signature in signatures):
        yield "differs", f"the record was changed after it was signed by {who}, or by another"
    elif trusted_keys:
        yield "confirmed", f"the record is signed by {who}, and unchanged"
    else:
        yield "unknown", f"the record is signed by {who}, and unchanged; whose that is, --key tells"


def _is_signed(record: Record, name: str, signature: str) -> bool:
    library = _library()
    try:
        key = library.ed25519.Ed25519PublicKey.from_public_bytes(base64.b64decode(name, validate=True))
        key.verify(base64.b64decode(signature, validate=True), bytes_to_sign(record))
    except (ValueError, library.exceptions.InvalidSignature):
        return False
    return True


def _raw(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def _library() -> Any:
    """Return the modules of cryptography, which only signatures need."""
    try:
        from cryptography import exceptions
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise FileProblem("signatures need the package cryptography: pip install 'duckanon[sign]'.") from None
    return SimpleNamespace(exceptions=exceptions, serialization=serialization, ed25519=ed25519)
