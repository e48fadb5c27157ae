"""Errors, and whose fault they are: a class for each kind of error."""

from __future__ import annotations

import sys
import warnings
from typing import Any


class Error(Exception):
    """Any error of veilset.

    ``exit_code`` is the exit code of the program for the same error. ``party`` names the other party that the error is about,
    and ``fault`` what that party did: ``misbehaved``, ``gave-up`` or ``stranger``. ``reason`` says why it gave up, as it
    reported: ``refused``, if its policy refuses the run, ``cancelled``, ``input``, ``disagreement``, ``messages`` (it found
    ours wrong), ``network``, ``output``, ``bug`` or ``told`` (by another party).
    """

    kind = "error"
    exit_code: int = 70
    party: str | None = None
    fault: str | None = None
    reason: str | None = None


class InputError(Error):
    """Our data, prepared half or filter: ``file``, ``row`` or ``line`` (from 1) and ``column`` say where."""

    kind = "input"
    file: str | None = None
    row: int | None = None
    line: int | None = None
    column: str | None = None


class UsageError(Error):
    """Wrong use on our side: options, identity, addresses."""

    kind = "usage"


class DisagreementError(Error):
    """We and another party ask for different things.

    ``differences`` is a list of dictionaries with ``term``, ``ours``, ``theirs`` and ``party``.
    """

    kind = "disagreement"
    differences: list[dict[str, str]] = []


class PeerError(Error):
    """Another party broke the protocol, gave up, or is not the one that we expect."""

    kind = "peer"


class NetworkError(Error):
    """The connection was refused, closed or cut off, or timed out."""

    kind = "network"


class OutputError(Error):
    """Our result or report could not be written, or the audit log or ledger could not be used."""

    kind = "output"


class RefusedError(Error):
    """Our own policy or limits refuse the run."""

    kind = "refused"


class CancelledError(Error):
    """Our side was asked to stop."""

    kind = "cancelled"


class BugError(Error):
    """A defect in veilset."""

    kind = "bug"


_KINDS = {kind.kind: kind for kind in Error.__subclasses__()}


def make(kind: str, message: str, fields: dict[str, Any]) -> Error:
    """Returns the exception of a kind, with its fields."""
    error = _KINDS.get(kind, BugError)(message)
    for name, value in fields.items():
        setattr(error, name, value)
    return error


def usage(text: str) -> Error:
    """Returns the error for a mistake of the caller."""
    return make("usage", text, {"exit_code": 2})


def told(error: BaseException) -> str:
    """Returns the text to show for a raised exception: all of it for an error of ours or of the cluster, the missing module for
    an import error, otherwise only the kind, because the message may name a cell."""
    kind = type(error).__name__
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{kind}: there is no {error.name} here"
    ours = isinstance(error, Error) or type(error).__module__.partition(".")[0] == "distributed"
    return f"{kind}: {error}" if ours else kind


def warn(text: str) -> None:
    """Warns at the line that called this package, each time, because the same text may be about another run."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__package__") in (__package__, f"{__package__}.aio") and frame.f_back is not None:
        frame = frame.f_back
    name = frame.f_globals.get("__name__", "veilset")
    warnings.warn_explicit(text, RuntimeWarning, frame.f_code.co_filename, frame.f_lineno, name, registry={})
