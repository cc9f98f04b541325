"""Declarations: every function that calls Python, each parameter of it once, in the ``declared.py`` of its package.

From a declaration come the function's macro, its checks and its options in SQL (`duckanon._bridge.generated`), the
signatures of `duckanon.large` and `duckanon.spark` (`duckanon._core.common.faces`), the ``[method]`` of a policy, the
rows of ``anon.functions()``, the table of options in the reference, and what the shell completes.

The algorithm is named, not imported: registering a database should not load the libraries of algorithms that nobody
calls. So this module and every ``declared.py`` import nothing but rules and Arrow.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import pyarrow as pa

from duckanon._core.common.contracts import Promise
from duckanon._core.common.rules import Rule, Words, fault_of

if TYPE_CHECKING:
    import numpy.typing as npt  # registering a database does not load numpy for it


class _Required:
    """The default of a parameter that has none."""


REQUIRED = _Required()


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function."""

    name: str  # its name, everywhere
    rule: Rule  # what it may be (`duckanon._core.common.arguments`): the kind of thing it is, its type and its limits
    meaning: str  # one sentence or two for the table of options in the reference, without a full stop at the end
    default: Any = REQUIRED  # a value that Python and SQL both can write; `REQUIRED`: there is none
    # the faces that take it: ``sql``, ``large``, ``spark``, ``spectral``, ``policy``. A face that has the function and
    # not the parameter refuses it with a sentence that says so.
    only_in: frozenset[str] = frozenset(("sql", "large", "spark", "spectral", "policy"))

    @property
    def is_required(self) -> bool:
        """Whether a call has to give it."""
        return self.default is REQUIRED

    @property
    def kind(self) -> str:
        """Its kind: ``table``, ``tables``, ``column``, ``columns`` or ``option``."""
        return getattr(self.rule, "kind", "option")

    @property
    def allowed(self) -> str:
        """Its allowed values, in the words of the reference."""
        return str(self.rule)

    def having(self, **changes: Any) -> Parameter:
        """Return the same parameter with another default, meaning or rule, for a function that differs in it."""
        return replace(self, **changes)

    def without(self, *faces: str) -> Parameter:
        """Return the same parameter for a function whose ``faces`` do not take it."""
        return self.having(only_in=self.only_in - set(faces))


@dataclass(frozen=True)
class Group:
    """Parameters that travel together: SQL gives them one by one, Python hands them on as one object."""

    name: str  # the algorithm's argument
    factory: Callable[..., Any]  # the class that takes the parameters by name
    parameters: tuple[Parameter, ...]

    def without(self, *faces: str) -> Group:
        """Return the same group for a function whose ``faces`` do not take its parameters."""
        return replace(self, parameters=tuple(parameter.without(*faces) for parameter in self.parameters))


Options: TypeAlias = Mapping[str, Any]
"""The values of all parameters of a call by name, after they were checked."""


@dataclass(frozen=True, kw_only=True)
class Function:
    """Base of all declarations."""

    name: str  # its name in SQL, without ``anon.``
    # module and function: ``duckanon._methods.swap.svd:pica``. It takes its tables under the names in
    # ``tables`` and the options under the names of the parameters, but need not take those that name the columns of its
    # tables.
    algorithm: str = ""
    stage: str = ""  # the folder of ``sql/`` with its reference; empty: only macros call it
    summary: str = ""  # one sentence, for `anon.functions()` and the indexes
    parameters: tuple[Parameter | Group, ...] = ()  # in the order of the signature: those without a default first
    promises: tuple[Promise, ...] = ()  # its contract: what its rows keep, whatever the table is
    # refuse what no single parameter shows: each takes the options and returns a sentence without the function's name,
    # or None
    checks: tuple[Callable[[Options], str | None], ...] = ()
    # the macro that computes it where that takes more than to hand tables to Python, called with every parameter in
    # order: ``anon._generalized``; or ``module:function`` that writes the query of the options; None: the query is
    # written from the declaration alone
    body: str | None = None

    @property
    def is_public(self) -> bool:
        """Whether users call it."""
        return bool(self.stage)

    @property
    def flat(self) -> tuple[Parameter, ...]:
        """All parameters, those of groups too."""
        each = (entry.parameters if isinstance(entry, Group) else (entry,) for entry in self.parameters)
        return tuple(itertools.chain.from_iterable(each))

    @property
    def defaults(self) -> dict[str, Any]:
        """The values of the parameters that a call need not give."""
        return {parameter.name: parameter.default for parameter in self.flat if not parameter.is_required}

    def arguments(self, options: Options) -> dict[str, Any]:
        """Return what the algorithm takes: groups of parameters as objects, and everything else as it is."""
        arguments = dict(options)
        for group in self.parameters:
            if isinstance(group, Group):
                members = {member.name: arguments.pop(member.name) for member in group.parameters}
                arguments[group.name] = group.factory(**members)
        return arguments

    def having(self, *parameters: Parameter) -> Self:
        """Return the same function with other parameters of the same names, for a face that differs in them."""
        by_name = {parameter.name: parameter for parameter in parameters}
        return replace(self, parameters=tuple(by_name.get(entry.name, entry) for entry in self.parameters))

    def parameter(self, name: str) -> Parameter | None:
        """Return a parameter by its name; None where there is none."""
        return next((parameter for parameter in self.flat if parameter.name == name), None)

    def faults(self, options: Options, words: Words) -> list[str]:
        """Return every sentence that refuses the options of a call, in the order of the parameters.

        What only several parameters show is looked at where each of them is right.
        """
        known = [parameter for parameter in self.flat if parameter.name in options]
        single = (fault_of(parameter.rule, parameter.name, options[parameter.name], words) for parameter in known)
        sentences = list(filter(None, single)) or list(filter(None, (check(options) for check in self.checks)))
        return [sentence.replace("got NULL", f"got {words.null}") for sentence in sentences]


@dataclass(frozen=True, kw_only=True)
class Release(Function):
    """A function that returns a table like the first one it takes: the same columns under the same names and types."""

    # the algorithm's names for the tables that it takes, of which all but the first may be None
    tables: tuple[str, ...] = ("table",)
    columns: tuple[str, ...] = ("cols",)  # the parameters that name the columns to change
    # the macro that turns what Python returns into rows, where the columns have other types than the table's, or a
    # function that names it by the options; it takes the lists, the table, `columns`, the columns that are released as
    # they are, and what ``unpack_options`` names
    unpacked_by: str | Callable[[Options], str] | None = None
    unpack_options: tuple[str, ...] = ()  # the parameters that it takes in addition
    # whether the algorithm is given its first table in a list, which it empties: the table's memory can then go while
    # it is at work
    hands_over: bool = False
    # whether the columns that it returns as Arrow dictionaries travel as codes and a list of the different values,
    # which the macro then puts together: a million labels take a tenth of the memory
    coded: bool = False
    # whether the rows come in an order that depends on their other values alone, where other columns than `columns`
    # travel with them: a parallel scan delivers them in any order, and the algorithm orders them by the rest
    orders_rows: bool = False
    # the parameter that names a column which is released, too, where it is given: as new numbers, of type BIGINT
    numbered: str | None = None


@dataclass(frozen=True, kw_only=True)
class Report(Function):
    """A function that returns rows with the same columns whatever it takes."""

    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))  # the columns of its rows
    tables: tuple[str, ...] = ("table",)  # as for a `Release`; every table may be None, where it has no rows
    columns: tuple[str, ...] = ("cols",)
    # what the rows are collected in on their way, `duckanon._bridge.parcels.TableBuilder` where it is None; given to
    # the algorithm as its first table
    collector: str | None = None
    caller: str | None = None  # the function that an error names, where that is not ``anon.`` and the name
    # whether several tables that come as one have the same columns, which are stacked then; ``_duckanon_release`` is
    # the place of a row's table, and the algorithm takes the names of the tables
    stacks_columns: bool = False
    # the parameter that names the column which identifies rows, where rows without one travel with their number in the
    # table, as ``_duckanon_number``
    row_key: str | None = None
    # the macro that makes the rows that travel of a table, where they are not its own; it takes the caller, the table
    # and `columns`
    rows_by: str | None = None
    hands_over: bool = False  # as for a `Release`; the list is called ``tables``


@dataclass(frozen=True, kw_only=True)
class ColumnReport(Function):
    """A report on the column ``col`` of ``tbl``, which the algorithm takes first, None where there are no rows."""

    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))  # the columns of its rows
    # the macro that gives the rows the types that go with the column's; it takes the rows, the table and the column
    unpacked_by: str = ""


@dataclass(frozen=True, kw_only=True)
class Scalar(Function):
    """A function of single values, all given by name; its result is of one Arrow type."""

    result: pa.DataType = field(default_factory=pa.float64)


Declaration: TypeAlias = Release | Report | ColumnReport | Scalar


def report_columns(columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]], schema: pa.Schema) -> pa.Table:
    """Make the table of a report from its columns; NaN becomes NULL."""
    return pa.table([pa.array(columns[field.name], field.type, from_pandas=True) for field in schema], schema=schema)


def report_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Make the table of a report from its rows; NaN and what a row does not have become NULL."""
    return report_columns({field.name: [row.get(field.name) for row in rows] for field in schema}, schema)
