"""The functions of this package that SQL can call."""

from __future__ import annotations

from duckanon._core.common.declare import Release

FUNCTIONS = (Release(name="suppress_cells", algorithm="duckanon._methods.suppress.suppress_cells:suppress_cells"),)
