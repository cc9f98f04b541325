"""The shim: the C library that DuckDB loads, from the wheel or compiled from ``shim.c``.

The build of a wheel (``hatch_build.py``) loads this file by its path, so it imports nothing of the package.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")

LIBRARY = {"win32": "libshim.dll", "darwin": "libshim.dylib"}.get(sys.platform, "libshim.so")
"""A wheel's name of the compiled library, beside this file; ``shim.so`` would be imported in its place."""


class NoCompilerError(Exception):
    """There is no C compiler, or it fails."""


def shim_bytes() -> bytes:
    """Return the compiled library; in a source tree, or a wheel built without one, it is compiled now."""
    carried = SOURCE.with_name(LIBRARY)
    if carried.exists():
        return carried.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder, LIBRARY)
        compile_shim(compiled)
        return compiled.read_bytes()


def compile_shim(library: Path) -> None:
    """Compile ``shim.c``, which includes the headers of the platform and no others."""
    compiler = _compiler()
    if compiler is None:
        raise NoCompilerError("there is no C compiler (cc)")
    if sys.platform == "win32":
        arguments = ["/nologo", "/O2", "/LD", str(SOURCE), f"/Fe{library}"]
    else:
        options = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-x" if sys.platform == "darwin" else "-s"]
        arguments = [*options, str(SOURCE), "-o", str(library), *(["-ldl"] if sys.platform == "linux" else [])]
    done = subprocess.run([compiler, *arguments], cwd=library.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr or done.stdout).strip().splitlines() or ["it does not say why"]
        raise NoCompilerError(f"the C compiler {compiler} fails: {reason[0]}")


def _compiler() -> str | None:
    if sys.platform == "win32":
        return shutil.which("cl")
    named = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return shutil.which("cc") or shutil.which(named) or shutil.which("gcc") or shutil.which("clang")
