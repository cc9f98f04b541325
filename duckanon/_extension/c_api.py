"""DuckDB's C API for extensions, over ctypes.

DuckDB hands an extension a struct of function pointers. The places in it are part of the API: DuckDB keeps them from
1.5.6 on, and 1.5.2 to 1.5.5 have the same ones, as their headers show (``duckdb_extension.h`` in the sdists on PyPI).
1.5.0 and 1.5.1 lack one function in the middle. A wrong place would crash, so unknown versions are refused.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

POINTER = ctypes.c_void_p
_INDEX = ctypes.c_uint64  # idx_t
_STATE = ctypes.c_int  # duckdb_state
_OUT = ctypes.c_void_p  # the address of a pointer that the function sets or clears
_TEXT = ctypes.c_char_p

FIRST_VERSION = (1, 5, 2)
_LAST_MAJOR = 2
_STABLE = (1, 5, 6)

SUCCESS = 0
TYPE_BOOLEAN = 1
TYPE_ANY = 34
INTEGER_TYPES = frozenset(range(2, 10))


class Result(ctypes.Structure):
    """``duckdb_result``: passed by its address, and freed by ``duckdb_destroy_result``."""

    _fields_ = (("counts", ctypes.c_uint64 * 3), ("pointers", POINTER * 3))


class Access(ctypes.Structure):
    """``struct duckdb_extension_access``: what DuckDB gives to an extension that it loads."""

    _fields_ = (
        ("set_error", ctypes.CFUNCTYPE(None, POINTER, _TEXT)),
        ("get_database", ctypes.CFUNCTYPE(ctypes.POINTER(POINTER), POINTER)),
        ("get_api", ctypes.CFUNCTYPE(POINTER, POINTER, _TEXT)),
    )


SCALAR_FUNCTION = ctypes.CFUNCTYPE(None, POINTER, POINTER, POINTER)
"""A function that DuckDB calls: its information, the block of arguments, and the vector for the results."""

_RESULT = ctypes.POINTER(Result)

# name: place in the struct, type of the result, types of the arguments
_FUNCTIONS: dict[str, tuple[int, Any, tuple[Any, ...]]] = {
    "open_ext": (1, _STATE, (_TEXT, _OUT, POINTER, _OUT)),
    "close": (2, None, (_OUT,)),
    "connect": (3, _STATE, (POINTER, _OUT)),
    "disconnect": (6, None, (_OUT,)),
    "library_version": (7, _TEXT, ()),
    "create_config": (8, _STATE, (_OUT,)),
    "set_config": (11, _STATE, (POINTER, _TEXT, _TEXT)),
    "destroy_config": (12, None, (_OUT,)),
    "query": (13, _STATE, (POINTER, _TEXT, _RESULT)),
    "destroy_result": (14, None, (_RESULT,)),
    "column_type": (16, ctypes.c_int, (_RESULT, _INDEX)),
    "column_logical_type": (18, POINTER, (_RESULT, _INDEX)),
    "column_count": (19, _INDEX, (_RESULT,)),
    "result_error": (21, _TEXT, (_RESULT,)),
    "free": (25, None, (POINTER,)),
    "create_logical_type": (156, POINTER, (ctypes.c_int,)),
    "destroy_logical_type": (184, None, (_OUT,)),
    "destroy_data_chunk": (187, None, (_OUT,)),
    "data_chunk_get_column_count": (189, _INDEX, (POINTER,)),
    "data_chunk_get_vector": (190, POINTER, (POINTER, _INDEX)),
    "vector_get_column_type": (193, POINTER, (POINTER,)),
    "create_scalar_function": (209, POINTER, ()),
    "destroy_scalar_function": (210, None, (_OUT,)),
    "scalar_function_set_name": (211, None, (POINTER, _TEXT)),
    "scalar_function_set_varargs": (212, None, (POINTER, POINTER)),
    "scalar_function_set_special_handling": (213, None, (POINTER,)),
    "scalar_function_set_volatile": (214, None, (POINTER,)),
    "scalar_function_set_return_type": (216, None, (POINTER, POINTER)),
    "scalar_function_set_extra_info": (217, None, (POINTER, POINTER, POINTER)),
    "scalar_function_set_function": (218, None, (POINTER, SCALAR_FUNCTION)),
    "register_scalar_function": (219, _STATE, (POINTER, POINTER)),
    "scalar_function_get_extra_info": (220, POINTER, (POINTER,)),
    "scalar_function_set_error": (221, None, (POINTER, _TEXT)),
    "row_count": (357, _INDEX, (_RESULT,)),
    "value_varchar": (381, POINTER, (_RESULT, _INDEX, _INDEX)),
    "to_arrow_schema": (411, POINTER, (POINTER, POINTER, POINTER, _INDEX, POINTER)),
    "data_chunk_to_arrow": (412, POINTER, (POINTER, POINTER, POINTER)),
    "schema_from_arrow": (413, POINTER, (POINTER, POINTER, _OUT)),
    "data_chunk_from_arrow": (414, POINTER, (POINTER, POINTER, POINTER, _OUT)),
    "destroy_arrow_converted_schema": (415, None, (_OUT,)),
    "destroy_error_data": (469, None, (_OUT,)),
    "error_data_message": (471, _TEXT, (POINTER,)),
    "connection_get_arrow_options": (504, None, (POINTER, _OUT)),
    "destroy_arrow_options": (505, None, (_OUT,)),
    "vector_reference_vector": (540, None, (POINTER, POINTER)),
}


class Api:
    """The functions of DuckDB's C API by their names without ``duckdb_``; unknown versions are refused."""

    def __init__(self, info: int, access: Access) -> None:
        struct = access.get_api(info, b"v1.2.0")
        if not struct:
            raise ValueError("duckanon: DuckDB does not hand over its C API; use DuckDB 1.5.2 or later.")
        count = 1 + max(place for place, _, _ in _FUNCTIONS.values())
        pointers = (POINTER * count).from_address(struct)
        self._pointers = (POINTER * count).from_buffer_copy(pointers)  # the struct goes after LOAD
        self.version: str = self.library_version().decode()
        number = tuple(map(int, re.findall(r"\d+", self.version)[:3]))
        if not FIRST_VERSION <= number < (_LAST_MAJOR + 1,):
            first = ".".join(map(str, FIRST_VERSION))
            raise ValueError(
                f"duckanon: the extension supports DuckDB {first} to {_LAST_MAJOR}.x; this is {self.version}; use "
                "another DuckDB, or a newer duckanon."
            )
        if number >= _STABLE and not access.get_api(info, b"v1.5.6"):
            raise ValueError(f"duckanon: DuckDB {self.version} does not have the C API of 1.5.6; use a newer duckanon.")

    def __getattr__(self, name: str) -> Any:
        """Look up a function when it is first called: LOAD needs half of them."""
        if name not in _FUNCTIONS:
            raise AttributeError(name)
        place, result, arguments = _FUNCTIONS[name]
        function = ctypes.CFUNCTYPE(result, *arguments)(self._pointers[place] or 0)
        setattr(self, name, function)
        return function


def pointer(value: int | None = None) -> Any:
    """Return a pointer for a function to set or clear: pass it by `address`."""
    return POINTER(value)


def address(thing: Any) -> int:
    """Return where something made by ctypes lies in memory."""
    return ctypes.addressof(thing)
