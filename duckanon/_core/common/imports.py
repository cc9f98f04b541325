"""Imports that wait until somebody calls for them."""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable
from typing import Any


@functools.cache
def import_function(path: str) -> Callable[..., Any]:
    """Import what a path such as ``duckanon._methods.swap.svd:pica`` names.

    Functions are called on DuckDB's threads, which Python knows only while they run Python code. Extension modules
    that are first imported there, scipy's among them, crash later: a thread of Python's own imports them.
    """
    module, _, name = path.partition(":")
    results: list[Any] = []

    def load() -> None:
        try:
            results.append(importlib.import_module(module))
        except BaseException as error:  # to be raised where it was asked for
            results.append(error)

    thread = threading.Thread(target=load, name="duckanon-import")
    thread.start()
    thread.join()
    if isinstance(results[0], BaseException):
        raise results[0]
    target: Callable[..., Any] = getattr(results[0], name)
    return target
