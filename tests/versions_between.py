"""``python -m tests.versions_between SEED``: a version of each dependency, drawn between the oldest and the newest.

Prints constraints for pip. The workflow `versions` takes the date as its seed: what the ends of a range do not show,
the middle shows some week.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

OLDEST = Path(__file__).parent / "oldest.txt"
VERSION = re.compile(r"\d+(?:\.\d+)+")


def version_key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, to compare."""
    return tuple(map(int, version.split(".")))


def oldest_versions(text: str) -> dict[str, str]:
    """Read the packages and versions of a file of constraints."""
    lines = (line.partition("#")[0].partition(";")[0].strip() for line in text.splitlines())
    return {name: version for name, _, version in (line.partition("==") for line in lines if line)}


def offered_versions(package: str) -> list[str]:
    """Ask the package index for the released versions of a package that run on this Python."""
    command = [sys.executable, "-m", "pip", "index", "versions", package]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in printed.splitlines() if line.startswith("Available versions:")]
    return VERSION.findall(line)


def draw_versions(oldest: dict[str, str], offered: dict[str, list[str]], seed: str) -> dict[str, str]:
    """Draw, for each package, a version that is at least its oldest."""
    draw = random.Random(seed)
    return {
        name: draw.choice(sorted({v for v in offered[name] if version_key(v) >= version_key(least)}, key=version_key))
        for name, least in sorted(oldest.items())
    }


if __name__ == "__main__":
    least_versions = oldest_versions(OLDEST.read_text("utf-8"))
    found_versions = {name: offered_versions(name) for name in least_versions}
    for name, version in draw_versions(least_versions, found_versions, sys.argv[1]).items():
        print(f"{name}=={version}")
