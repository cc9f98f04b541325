"""Faces: functions of `duckanon.large`, `.spark` and `.spectral`, with the parameters of a declared function.

Signature, checks and docstring come from the declaration. A face writes only what it has in addition::

    @face_of(RECODE, "large")
    def recode(source, target, given, *, memory="2GB"):
        ...

is called ``recode(source, target, cols, k, hierarchies=None, ..., memory="2GB")``; ``given`` holds the options by name,
after they were checked, and groups of them as objects (`duckanon._core.common.declare.Group`).
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

from duckanon._core.common.declare import Function, Options, Parameter
from duckanon._core.common.names import unknown_option
from duckanon._core.common.rules import IN_PYTHON

Result = TypeVar("Result")
_GIVEN = "given"


def face_of(declared: Function, face: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Give a function the parameters that a declared function has in a face: ``large``, ``spark`` or ``spectral``."""

    def declare(function: Callable[..., Result]) -> Callable[..., Result]:
        caller = f"duckanon.{face}.{declared.name}"
        own = inspect.signature(function)
        signature = _signature(own, declared, face)

        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Result:
            _refuse_unknown(options, signature, declared, caller)
            options = {name: value for name, value in options.items() if name in signature.parameters}
            bound = signature.bind(*arguments, **options)
            bound.apply_defaults()
            values = bound.arguments
            given = {one.name: values.get(one.name, one.default) for one in declared.flat if one.kind != "table"}
            if faults := declared.faults(given, IN_PYTHON):
                raise ValueError(f"{caller}: {' '.join(faults)}")
            own_values = {name: values[name] for name in own.parameters if name != _GIVEN}
            return function(**own_values, **{_GIVEN: declared.arguments(given)})

        call.__signature__ = signature.replace(return_annotation=own.return_annotation)  # type: ignore[attr-defined]
        call.__doc__ = _documented(function.__doc__ or "", declared, face)
        return call

    return declare


def _taken(declared: Function, face: str) -> list[Parameter]:
    return [one for one in declared.flat if one.kind != "table" and face in one.only_in]


def _signature(own: inspect.Signature, declared: Function, face: str) -> inspect.Signature:
    """Put what is declared in the place of ``given``: required parameters and `cols` by position, options by name."""
    declared_parameters, has_default = [], False
    for one in _taken(declared, face):
        is_by_position = one.name == "cols" or (one.is_required and not has_default)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if is_by_position else inspect.Parameter.KEYWORD_ONLY
        default = inspect.Parameter.empty if one.is_required else one.default
        declared_parameters.append(inspect.Parameter(one.name, kind, default=default))
        has_default |= not one.is_required
    mine = [one for name, one in own.parameters.items() if name != _GIVEN]
    first = [one for one in mine if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    last = [one for one in mine if one.kind is inspect.Parameter.KEYWORD_ONLY]
    return own.replace(parameters=[*first, *sorted(declared_parameters, key=lambda one: one.kind), *last])


def _refuse_unknown(options: Options, signature: inspect.Signature, declared: Function, caller: str) -> None:
    """Refuse options that the function lacks, unless one that SQL has says what happens anyway."""
    for name, value in options.items():
        if name in signature.parameters:
            continue
        missing = declared.parameter(name)
        if missing is None or missing.is_required:  # a table, which faces call otherwise
            raise unknown_option(caller, name, signature.parameters)
        if value != missing.default:
            raise ValueError(
                f"{caller}: {name} must be {IN_PYTHON.show(missing.default)} here, only anon.{declared.name} takes "
                f"others; got {IN_PYTHON.show(value)}."
            )


def _documented(doc: str, declared: Function, face: str) -> str:
    """Add the declared parameters to a docstring, and those that the face does not take."""
    lines = [
        textwrap.fill(_described(one), 116, initial_indent="    ", subsequent_indent=" " * 8)
        for one in _taken(declared, face)
    ]
    not_taken = [one.name for one in declared.flat if one.kind != "table" and face not in one.only_in]
    notes = f"\n\nOnly anon.{declared.name} takes {', '.join(not_taken)}." if not_taken else ""
    section = "Args:\n"
    written = inspect.cleandoc(doc)
    declared_lines = "\n".join(lines) + "\n"
    if section in written:
        return written.replace(section, section + declared_lines, 1) + notes
    head, heading, rest = re.split(r"^((?:Returns|Raises|Examples):\n|\Z)", written, maxsplit=1, flags=re.MULTILINE)
    return f"{head.rstrip()}\n\n{section}{declared_lines}\n{heading}{rest}{notes}"


def _described(one: Parameter) -> str:
    """Describe a parameter in the words of Python: None and {'age': 2} where SQL has NULL and MAP {'age': 2}."""
    start = "" if one.is_required else f"Default: {IN_PYTHON.show(one.default)}. "
    text = f"{one.name}: {one.meaning}. {start}{one.allowed[0].upper()}{one.allowed[1:]}."
    return text.replace("NULL", "None").replace("MAP {", "{").replace("`", "``")
