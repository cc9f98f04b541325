"""Faces: functions of `duckanon.large`, `.spark` and `.spectral`, with the parameters of a declared function.

Signature, checks and docstring come from the declaration. A face writes only what it has in addition::

    @face_of(RECODE, "large")
    def recode(source, target, options, *, memory="2GB"):
        ...

is called ``recode(source, target, cols, k, hierarchies=None, ..., memory="2GB")``; ``options`` holds the options by
name, after they were checked, and groups of them as objects (`duckanon._core.common.declare.Group`).
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
_OPTIONS = "options"  # the parameter that takes what is declared


def face_of(declared: Function, face: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Give a function the parameters that a declared function has in a face: ``large``, ``spark`` or ``spectral``."""

    def declare(function: Callable[..., Result]) -> Callable[..., Result]:
        caller = f"duckanon.{face}.{declared.name}"
        written = inspect.signature(function)
        signature = _make_signature(written, declared, face)

        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Result:
            _refuse_unknown(options, signature, declared, caller)
            options = {name: value for name, value in options.items() if name in signature.parameters}
            bound = signature.bind(*arguments, **options)
            bound.apply_defaults()
            values = bound.arguments
            parameters = [parameter for parameter in declared.flat if parameter.kind != "table"]
            checked = {parameter.name: values.get(parameter.name, parameter.default) for parameter in parameters}
            if faults := declared.faults(checked, IN_PYTHON):
                raise ValueError(f"{caller}: {' '.join(faults)}")
            rest = {name: values[name] for name in written.parameters if name != _OPTIONS}
            return function(**rest, **{_OPTIONS: declared.arguments(checked)})

        call.__signature__ = signature.replace(return_annotation=written.return_annotation)  # type: ignore[attr-defined]
        call.__doc__ = _document_parameters(function.__doc__ or "", declared, face)
        return call

    return declare


def _select_parameters(declared: Function, face: str) -> list[Parameter]:
    return [parameter for parameter in declared.flat if parameter.kind != "table" and face in parameter.only_in]


def _make_signature(written: inspect.Signature, declared: Function, face: str) -> inspect.Signature:
    """Put what is declared in the place of the options: required parameters and `cols` by position, others by name."""
    added, has_default = [], False
    for parameter in _select_parameters(declared, face):
        is_by_position = parameter.name == "cols" or (parameter.is_required and not has_default)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if is_by_position else inspect.Parameter.KEYWORD_ONLY
        default = inspect.Parameter.empty if parameter.is_required else parameter.default
        added.append(inspect.Parameter(parameter.name, kind, default=default))
        has_default |= not parameter.is_required
    kept = [parameter for name, parameter in written.parameters.items() if name != _OPTIONS]
    first = [parameter for parameter in kept if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    last = [parameter for parameter in kept if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    return written.replace(parameters=[*first, *sorted(added, key=lambda parameter: parameter.kind), *last])


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


def _document_parameters(doc: str, declared: Function, face: str) -> str:
    """Add the declared parameters to a docstring, and those that the face does not take."""
    lines = [
        textwrap.fill(_describe_parameter(parameter), 116, initial_indent="    ", subsequent_indent=" " * 8)
        for parameter in _select_parameters(declared, face)
    ]
    names = [
        parameter.name for parameter in declared.flat if parameter.kind != "table" and face not in parameter.only_in
    ]
    notes = f"\n\nOnly anon.{declared.name} takes {', '.join(names)}." if names else ""
    section = "Args:\n"
    written = inspect.cleandoc(doc)
    declared_lines = "\n".join(lines) + "\n"
    if section in written:
        return written.replace(section, section + declared_lines, 1) + notes
    head, heading, rest = re.split(r"^((?:Returns|Raises|Examples):\n|\Z)", written, maxsplit=1, flags=re.MULTILINE)
    return f"{head.rstrip()}\n\n{section}{declared_lines}\n{heading}{rest}{notes}"


def _describe_parameter(parameter: Parameter) -> str:
    """Describe a parameter in the words of Python: None and {'age': 2} where SQL has NULL and MAP {'age': 2}."""
    start = "" if parameter.is_required else f"Default: {IN_PYTHON.show(parameter.default)}. "
    text = f"{parameter.name}: {parameter.meaning}. {start}{parameter.allowed[0].upper()}{parameter.allowed[1:]}."
    return text.replace("NULL", "None").replace("MAP {", "{").replace("`", "``")
