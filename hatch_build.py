"""Compiles the C part of the extension into the wheel, where there is a compiler; a wheel without it says so."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ShimBuildHook(BuildHookInterface):
    """Adds ``duckanon/_extension/libshim.so`` to a wheel and names its platform; any Python can load it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before hatchling collects the files; an editable install compiles when it is needed."""
        if self.target_name != "wheel" or version == "editable":
            return
        shim = _shim_module(Path(self.root))
        library = Path(self.directory, shim.LIBRARY).absolute()
        library.parent.mkdir(parents=True, exist_ok=True)
        try:
            shim.compile_shim(library)
        except shim.NoCompilerError as error:
            self.app.display_warning(
                f"This wheel is built without the extension for the stock DuckDB shell: {error}. "
                "`duckanon extension` will need a C compiler."
            )
            return
        build_data["force_include"][str(library)] = f"duckanon/_extension/{shim.LIBRARY}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform_tag()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing but the wheel."""
        for name in ("libshim.so", "libshim.dylib", "libshim.dll"):
            Path(self.directory, name).unlink(missing_ok=True)


def _shim_module(root: Path) -> Any:
    """Load the one module that compiles, without the package, whose dependencies a build does not have."""
    spec = importlib.util.spec_from_file_location("shim", root / "duckanon" / "_extension" / "shim.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _platform_tag() -> str:
    """Name the platform; on Linux with the glibc of this machine, since an older one may lack symbols of it."""
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if not tag.startswith("linux_") or sys.platform != "linux":
        return tag
    try:
        libc, version = os.confstr("CS_GNU_LIBC_VERSION").split()  # type: ignore[union-attr]
    except (AttributeError, OSError, ValueError):
        return tag  # another libc
    major, minor = version.split(".")[:2]
    return tag.replace("linux_", f"manylinux_{major}_{minor}_", 1) if libc == "glibc" else tag
