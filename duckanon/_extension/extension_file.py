"""The file ``duckanon.duckdb_extension``: the shim, the Python that it starts, and the footer that DuckDB reads.

It belongs to one Python environment and one version of duckanon.
"""

from __future__ import annotations

import gzip
import os
import platform
import sys
import sysconfig
import tempfile
import zlib
from pathlib import Path

import duckanon
from duckanon._extension.shim import NoCompilerError, shim_bytes

NAME = "duckanon.duckdb_extension"

BLOCK_BYTES = 4096
"""As ``shim.c`` reads it."""

API_VERSION = "v1.2.0"
"""The first API for extensions: from a later one on, an older DuckDB would refuse in words of its own."""

RELEASES = ("v1.5.2", "v1.5.3", "v1.5.4", "v1.5.5", "v1.5.6", "v2.0.0")
"""The folders of a repository, in which DuckDB looks for its own version."""


def write_extension(path: Path) -> Path:
    """Write the extension for this Python to a file or into an existing folder, and return where it is.

    Refused where Python's library cannot be loaded by another program, or the shim is missing and cannot be compiled.
    """
    path = (path / NAME if path.is_dir() else path).absolute()
    if path.name != NAME:
        raise ValueError(f"duckanon extension: the file must be called {NAME}, as DuckDB expects it; got {path.name}.")
    _replace(path, extension_bytes())
    return path


def write_repository(folder: Path, releases: tuple[str, ...] = RELEASES) -> Path:
    """Write the extension into a folder that ``INSTALL duckanon FROM`` reads: one file for each version of DuckDB."""
    written = gzip.compress(extension_bytes(), mtime=0)
    for release in releases:
        target = folder.absolute() / release / duckdb_platform()
        target.mkdir(parents=True, exist_ok=True)
        _replace(target / f"{NAME}.gz", written)
    return folder.absolute()


def extension_bytes() -> bytes:
    """Return the content of the extension for this Python."""
    package_folder = Path(duckanon.__file__).absolute().parent.parent
    fields = ("DUCKANON", str(libpython()), sys.executable, str(package_folder), duckanon.__version__)
    block = b"\0".join(os.fsencode(field) for field in fields) + b"\0"
    if len(block) > BLOCK_BYTES:
        raise ValueError("duckanon extension: the path of Python is too long; install it in a folder with a short one.")
    try:
        library = shim_bytes()
    except NoCompilerError as error:
        raise ValueError(
            f"duckanon extension: this package was built without its C part, and {error}; install a wheel for this "
            "platform, or a C compiler."
        ) from None
    return library + block.ljust(BLOCK_BYTES, b"\0") + _footer()


def libpython() -> Path:
    """Find the library of this Python, which the shim loads; some are built without a shared one."""
    for folder in _library_folders():
        for name in _library_names():
            if name and (path := folder / name).is_file() and path.suffix != ".a":
                return path
    name = _library_names()[-1]
    raise ValueError(
        f"duckanon extension: this Python ({sys.executable}) has no shared library {name}, without which DuckDB cannot "
        "start it; install the library (on Debian the package "
        f"libpython{sys.version_info.major}.{sys.version_info.minor}), or use a Python that has one, such as uv's."
    )


def _library_names() -> list[str]:
    major, minor = sys.version_info[:2]
    if sys.platform == "win32":
        return [f"python{major}{minor}.dll"]
    named = [str(sysconfig.get_config_var(variable) or "") for variable in ("INSTSONAME", "LDLIBRARY")]
    last = f"libpython{major}.{minor}.dylib" if sys.platform == "darwin" else f"libpython{major}.{minor}.so.1.0"
    return [*named, last]


def _library_folders() -> list[Path]:
    variables = [sysconfig.get_config_var(name) for name in ("LIBDIR", "PYTHONFRAMEWORKPREFIX")]
    folders = [Path(folder) for folder in variables if folder]
    if multiarch := sysconfig.get_config_var("MULTIARCH"):
        folders += [folder / multiarch for folder in folders]
    base = Path(sys.base_prefix)
    return [*folders, base / "lib", base]


def duckdb_platform() -> str:
    """Name the platform as DuckDB does: ``linux_arm64``."""
    machine = platform.machine().lower()
    processor = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    system = {"win32": "windows", "darwin": "osx"}.get(sys.platform, "linux")
    is_musl = system == "linux" and "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or "")
    return f"{system}_{processor}" + "_musl" * is_musl


def _footer() -> bytes:
    """Return what DuckDB reads at the end of an extension.

    It is the head of a WebAssembly section, eight fields of 32 bytes in reverse order, and 256 bytes for a signature,
    which this one does not have.
    """
    fields = ("4", duckdb_platform(), API_VERSION, duckanon.__version__, "C_STRUCT", "", "", "")
    return (
        b"\x00\x93\x04\x10duckdb_signature\x80\x04"
        + b"".join(field.encode().ljust(32, b"\0") for field in reversed(fields))
        + bytes(256)
    )


def _is_own(path: Path) -> bool:
    """Tell whether a file has what `extension_bytes` writes for the shim; empty ones have nothing to lose."""
    content = path.read_bytes()
    try:
        content = gzip.decompress(content) if path.name.endswith(".gz") else content
    except (OSError, EOFError, zlib.error):
        return False
    return not content or b"DUCKANON\0" in content


def _replace(path: Path, content: bytes) -> None:
    """Write a file and rename it into place: a shell that has loaded the old one keeps it. Others' files stay."""
    if path.exists() and not _is_own(path):
        raise ValueError(f"duckanon extension: {path} is no extension of duckanon; move it away.")
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        temporary = Path(file.name)
        try:
            file.write(content)
            file.close()
            temporary.chmod(0o644)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
