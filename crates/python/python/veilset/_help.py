"""The output of ``help()``, completion and signatures for a function that takes options: all options of the native part."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from . import _native, _options
from ._people import Identity, PeerBook, Policy
from ._run import Doing

F = TypeVar("F", bound=Callable[..., Any])

#: The options that the program does not have.
_OURS = {
    "progress": "Show bars (they need tqdm), or call this with each veilset.Doing; what it raises stops the run",
    "client": "The client of the cluster [default: the current one]",
    "lanes": "Where workers meet those of the other side",
    "route": "The name that a proxy in front of all workers knows them by",
}
#: The texts that differ from the program's.
_OTHERWISE = {
    "[default: standard output]": "[default: it comes back as a frame]",
    "none disables it": "None disables it",
    "Example: connect host.example.org:7000 proxy proxy.internal:3128":
        'Example: connect="host.example.org:7000", proxy="proxy.internal:3128"',
    "The format of our file": "The format of our file; frames have none",
}
#: The options of most calls, which come first.
_FIRST = ("key", "role", "peer", "listen", "connect")
#: The default shown for a parameter that need not be given: None would mean something else.
_SHOWN: Any = ...


class _Option(NamedTuple):
    help: str
    default: str | None
    flag: bool
    required: bool


@lru_cache(maxsize=None)
def _known() -> dict[str, dict[str, _Option]]:
    """Returns the options of all commands."""
    commands = list(_options.OF)
    of_each = _native.options(commands)
    return {command: {one[0]: _Option(*one[1:]) for one in all} for command, all in zip(commands, of_each)}


def with_options(*commands: str, typed: Any = None) -> Callable[[F], F]:
    """Documents the options of a function: all options of these commands, or only those in ``typed``."""

    def dress(function: F) -> F:
        types: dict[str, Any] = {}
        for one in [typed] if typed else [_options.OF[command] for command in commands]:
            types.update(typing.get_type_hints(one, None, vars(_Types)))
        known: dict[str, _Option] = {}
        for command in reversed(commands):
            known.update(_known()[command])
        names = [*(name for name in _FIRST if name in types), *(name for name in types if name not in _FIRST)]
        own = _own(function)
        options = [_parameter(name, types[name], known.get(name), len(commands) > 1) for name in names]
        returned = _evaluated(function.__annotations__["return"], function)
        function.__signature__ = inspect.Signature([*own, *options], return_annotation=returned)  # type: ignore[attr-defined]
        shown = [parameter.name for parameter in own if parameter.name in _OURS] + names
        function.__doc__ = _documented(function.__doc__ or "", shown, known)
        return function

    return dress


class _Types:
    """The names that the types of options refer to."""

    Identity, PeerBook, Policy, Doing = Identity, PeerBook, Policy, Doing


def _own(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Returns the parameters that are not options."""
    all = inspect.signature(function).parameters.values()
    own = [one for one in all if one.kind is not inspect.Parameter.VAR_KEYWORD]
    return [one.replace(annotation=_evaluated(one.annotation, function)) for one in own]


def _evaluated(annotation: Any, function: Callable[..., Any]) -> Any:
    return eval(annotation, function.__globals__) if isinstance(annotation, str) else annotation


def _parameter(name: str, of: Any, option: _Option | None, several: bool) -> inspect.Parameter:
    default: Any = None
    if option is not None and option.default is not None:
        default = int(option.default) if option.default.isdecimal() else option.default
    if option is not None and option.flag:
        default = False
    if name == "audit_log":
        default = _SHOWN
    if option is not None and option.required and not several:
        default = inspect.Parameter.empty
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=of)


def _documented(doc: str, names: Iterable[str], known: Mapping[str, _Option]) -> str:
    text = "\n".join(f"    {name}: {_OURS.get(name) or known[name].help}" for name in names)
    for typed, here in _OTHERWISE.items():
        text = text.replace(typed, here)
    return f"{inspect.cleandoc(doc)}\n\nOptions:\n{text}\n"
