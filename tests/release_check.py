"""``make release-check``: all of a version but its upload, tried in empty environments.

Builds the source archive and the wheel, checks what the package index will check, and installs each of them into an
environment of its own: the wheel runs the demo and the extension in the stock shell; the source archive is built again,
and answers a query. Nothing is uploaded, and no file outside `build/release` is written.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import duckanon

ROOT = Path(__file__).parent.parent
QUERY = "SELECT k FROM anon.k_anonymity('people', ['sex'])"
PEOPLE = "CREATE TEMP TABLE people AS SELECT ['f', 'm'][1 + i % 2] AS sex FROM range(10) AS t(i);"


def check_version(tag: str | None) -> None:
    """Refuse a tag that is not this version, and a version whose pages name another or have no date."""
    version = duckanon.__version__
    if tag is not None and tag != f"v{version}":
        raise SystemExit(f"release-check: the tag is {tag}, and duckanon/__init__.py says {version}.")
    heading = re.compile(rf"(?m)^## {re.escape(version)}, \d{{4}}-\d\d-\d\d$")
    if tag is not None and not heading.search((ROOT / "CHANGELOG.md").read_text("utf-8")):
        raise SystemExit(f"release-check: CHANGELOG.md has no heading `## {version}, <date>`.")


def run(*command: str | Path, **options: object) -> str:
    """Run a command that must succeed, and return what it prints."""
    print("$", " ".join(map(str, command)), flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"release-check: failed\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def build(folder: Path) -> tuple[Path, Path]:
    """Build the source archive and, from it as the package index has it, the wheel."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    unpacked = folder / "unpacked"
    with tarfile.open(archive) as tar:
        tar.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=source)
    (wheel,) = folder.glob("*.whl")
    return archive, wheel


def empty_environment(folder: Path, *packages: str | Path) -> Path:
    """Install packages into a new environment, and return its folder of commands."""
    run(sys.executable, "-m", "venv", folder)
    commands = folder / ("Scripts" if os.name == "nt" else "bin")
    run(commands / "python", "-m", "pip", "install", "-q", *packages)
    return commands


def try_wheel(wheel: Path, folder: Path) -> None:
    """Run the demo, the extension in the stock shell, and look for the examples."""
    commands = empty_environment(folder / "wheel", wheel, "duckdb-cli")
    report = folder / "duckanon-demo" / "report.html"
    printed = run(commands / "duckanon", "demo", "--rows", "2000", cwd=folder)
    assert printed.rstrip().endswith("report.html"), printed
    assert report.stat().st_size > 10_000
    (installed,) = folder.glob("wheel/[Ll]ib/**/site-packages/duckanon")
    assert (installed / "examples" / "notebooks" / "clinic.ipynb").exists()
    run(commands / "duckanon", "extension", cwd=folder)
    script = f"LOAD './duckanon.duckdb_extension'; {PEOPLE} {QUERY};"
    printed = run(commands / "duckdb", "-unsigned", "-csv", "-c", script, cwd=folder)
    assert printed.split()[-1] == "5", printed


def try_archive(archive: Path, folder: Path) -> None:
    """Install from the source archive, which builds it again, and ask a query."""
    commands = empty_environment(folder / "archive", archive)
    printed = run(commands / "duckanon", "-c", f"{PEOPLE} {QUERY}", "--format", "csv", cwd=folder)
    assert printed.split()[-1] == "5", printed
    assert run(commands / "duckanon", "--version").split() == ["duckanon", duckanon.__version__]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the version, build it, and try what was built."""
    parser = argparse.ArgumentParser(prog="make release-check", description=__doc__)
    parser.add_argument("--tag", help="the tag that is to be published, such as v0.1.0")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "release")
    options = parser.parse_args(arguments)
    check_version(options.tag)
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    archive, wheel = build(options.folder)
    run(sys.executable, "-m", "twine", "check", "--strict", archive, wheel)
    try_wheel(wheel, options.folder)
    try_archive(archive, options.folder)
    print(f"{archive.name} and {wheel.name} are ready in {options.folder}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
