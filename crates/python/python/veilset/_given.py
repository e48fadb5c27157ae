"""Options as they were given, and as the native part takes them. Options without effect are refused."""

from __future__ import annotations

import datetime
import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import _options
from ._errors import usage
from ._people import Identity, PeerBook, Policy

#: The options that name columns, in their order.
_COLUMNS = ("key", "send_columns", "receive_columns")
#: The options that take several words in any order.
_WORDS = ("normalize", "assume")
_TIMES = ("connect_timeout", "idle_timeout")
#: The options that define how a file is read.
_OF_FILES = ("format", "delimiter", "no_header", "escape", "no_quotes", "multiline_keys")
#: The operations whose results have rows of ours.
ROWS = ("intersect", "union", "id")


def given_of(options: Mapping[str, Any], names_of: Callable[[], Sequence[str] | None]) -> dict[str, Any]:
    """Returns the options that were given. ``None`` means that an option was not given, except for the log. ``names_of``
    returns the names of the table's columns, if they are known."""
    given = {name: value for name, value in options.items() if not (value is None and name != "audit_log")}
    for name in _COLUMNS:
        if name in given:
            renamed = name == "receive_columns" and isinstance(given[name], Mapping)
            given[name] = _renamed(name, given[name]) if renamed else _columns(name, given[name], names_of)
    return given


def _columns(option: str, value: Any, names_of: Callable[[], Sequence[str] | None]) -> list[str]:
    """Returns names of columns, one or several in their order."""
    if isinstance(value, str) or _is_label(value):
        return [str(value)]
    several = value if isinstance(value, (list, tuple)) else _listed(option, value)
    # A series may hold cells, which must not be shown.
    found = _texts(option, several)
    if several is value:
        return found
    # The columns of the other side are not known.
    names = None if option == "receive_columns" else names_of()
    if names is None:
        raise usage(f"{option} takes names of columns, and this {_kind(value)} may hold cells. Give a list of names")
    if not set(found) <= set(names):
        raise usage(
            f"{option} takes names of columns, and this {_kind(value)} has other values. Give the name of the column, for instance"
            f' {option}="email"; an index must be made a column first'
        )
    return found


def _renamed(option: str, value: Mapping[Any, Any]) -> dict[str, str]:
    """Returns the names of the other side's columns, each with its name here."""
    return dict(zip(_texts(option, list(value)), _texts(option, list(value.values()))))


def _texts(option: str, names: Sequence[Any]) -> list[str]:
    if wrong := [one for one in names if not (isinstance(one, str) or _is_label(one))]:
        raise usage(f"{option} takes names of columns, and one of these is a {_kind(wrong[0])}. Give their names as text")
    return [str(one) for one in names]


def _listed(option: str, value: Any) -> list[Any]:
    if isinstance(value, (set, frozenset)):
        raise usage(f"{option} is a set, which has no order, and the order of columns matters. Give a list")
    if isinstance(value, (bytes, bytearray, Mapping)) or hasattr(value, "columns") or not isinstance(value, Iterable):
        raise usage(f"{option} takes the name of a column or a list of names, and this is a {_kind(value)}")
    return list(value)


def _is_label(value: Any) -> bool:
    """Returns whether the value is an integer, which pandas allows as the name of a column."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    return f"{type(value).__module__.split('.')[0]}.{type(value).__name__}".removeprefix("builtins.")


def worded(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options as the native part takes them."""
    return {name: _word(name, value) for name, value in given.items()}


def _word(name: str, value: Any) -> Any:
    """Returns the value of an option as the native part takes it."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        # This is a numpy number. A numpy time has a unit only if it converts into a timedelta.
        number, value = value, value.item()
        if getattr(getattr(number, "dtype", None), "kind", "") in ("m", "M") and not isinstance(value, datetime.timedelta):
            raise usage(f"{name} takes no {_kind(number)} of this unit. Give a number, or for a time a datetime.timedelta")
    if name in _TIMES:
        return _seconds(name, value)
    if isinstance(value, (Identity, PeerBook, Policy)):
        return value.path
    if name == "audit_log" and value is None:
        return "none"
    if name in _COLUMNS or name in _WORDS:
        return _list(name, value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, (str, bytes, os.PathLike, numbers.Number)) or name == "input":
        return value
    # The value is not shown, since it may be a column.
    raise usage(f"{name} takes one value, and this is a {_kind(value)}")


def _list(name: str, value: Any) -> str | list[str]:
    if isinstance(value, Mapping):
        # The names are quoted as typed, so that each may contain an equals sign.
        return ",".join(f"{_quoted(theirs)}={_quoted(ours)}" for theirs, ours in value.items()) or []
    if isinstance(value, str):
        return value
    # Anything else may hold cells.
    if isinstance(value, (list, tuple, set, frozenset)) and all(isinstance(one, str) for one in value):
        return list(value)
    raise usage(f"{name} takes a text or a list of texts, and this is a {_kind(value)}")


def _quoted(name: str) -> str:
    """Quotes a name as typed in a list of columns."""
    return '"' + name.replace('"', '""') + '"'


def _seconds(name: str, value: Any) -> str:
    """Converts a time into seconds. The native part checks its range."""
    if isinstance(value, datetime.timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (str, numbers.Real)):
        raise usage(f"{name} takes seconds, as a number or as a datetime.timedelta, and this is a {_kind(value)}")
    return str(value)


def check_applies(given: Mapping[str, Any], operation: str, is_frame: bool) -> None:
    """Refuses options that would have no effect here."""
    for name in given:
        if name == "input":
            raise usage("input: the data are the first argument. Omit it")
        if name == "quiet":
            raise usage('quiet: nothing is printed here. Omit it; what there is to say is logged as "veilset"')
    for name in _OF_FILES if is_frame else ():
        if given.get(name, False) is not False:
            raise usage(f"{name} says how a file is read, and the data are a frame. Omit it")
    if operation and str(given.get("output", "")) == "-":
        raise usage("output must be a file. Omit it, and the result comes back")
    if operation not in ROWS or "output" in given:
        return
    beside = [name for name in ("ids", "map") if name in given]
    for name in ("output_format", "for_spreadsheets"):
        if given.get(name, False) is not False and not (name == "for_spreadsheets" and beside):
            raise usage(f"{name} says how a file is written, and the result comes back as a frame. Give output, or omit it")


def check_on_workers(given: Mapping[str, Any], operation: str) -> None:
    """Refuses options that would have no effect on a table spread over workers."""
    if not given.get("shards"):
        raise usage("workers run the shards of a job. Give their number with shards")
    if "output" in given:
        raise usage("the result of workers goes to no file. Leave output out, and write the frame")
    here = _options.OF[operation].__annotations__
    for name in given:
        if name in here and name not in _options.OnWorkers.__annotations__:
            raise usage(f"{name} does not apply to a table that lies with workers. Omit it, or use veilset.{operation}")
    check_applies(given, operation, True)
