"""Private set operations between organisations: combine lists without showing them to each other.

    import veilset

    r = veilset.intersect(df, key="email", role="receiver", peer="hospital-b", listen="0.0.0.0:7000")
    r.frame    # the rows of df that the other party has too: a frame of the same kind
    r.learned  # what each party learned, in sentences

``df`` is a pandas, Polars or pyarrow frame, a DuckDB relation, any object with ``__arrow_c_stream__``, or the name of a
file. The options are those of the program, with underscores; identity, address book, policy and audit log apply by
default as they do there. ``audit_log=None`` keeps no log.

:func:`prepare` and :mod:`veilset.filter` make in advance what a run takes long for; :mod:`veilset.aio` has coroutines.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import aio, filter  # noqa: A004
from ._errors import (
    BugError,
    CancelledError,
    DisagreementError,
    Error,
    InputError,
    NetworkError,
    OutputError,
    PeerError,
    RefusedError,
    UsageError,
)
from ._native import Frame
from ._people import Identity, Peer, PeerBook, Policy
from ._run import Checked, Doing, Result, run
from ._run import check as _check
from ._run import make as _make

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import _options


def intersect(data: Any, **options: Unpack[_options.Intersect]) -> Result:
    """The rows of the receiver whose keys the sender has too. Only the receiver learns which, unless ``both``."""
    return run("intersect", data, options)


def union(data: Any, **options: Unpack[_options.Union_]) -> Result:
    """The receiver's rows and the sender's new keys, without showing the receiver which ones both have."""
    return run("union", data, options)


def count(data: Any, **options: Unpack[_options.Count]) -> Result:
    """How many keys both have: ``matches``."""
    return run("count", data, options)


def sum(data: Any, **options: Unpack[_options.Sum]) -> Result:  # noqa: A001
    """The sum of the sender's values over the keys that both have: ``matches`` and ``sum``."""
    return run("sum", data, options)


def id(data: Any, **options: Unpack[_options.Id]) -> Result:  # noqa: A001
    """Our rows with identifiers that are equal where the keys of both are; nobody learns which are."""
    return run("id", data, options)


def share(data: Any, **options: Unpack[_options.Share]) -> Result:
    """Random shares of what matches, for a further computation; nobody learns anything."""
    return run("share", data, options)


def check(operation: str, data: Any, **options: Any) -> Checked:
    """Agrees with the other party on a run, and computes nothing: what would run, what it costs and shows."""
    return _check(operation, data, options)


def prepare(data: Any, **options: Unpack[_options.Prepare]) -> Path:
    """Computes our half of a run before the other party is met, and returns its file.

    The half is for one run with the same data: ``prepared=`` that file. The run deletes it.
    """
    _make("prepare", data, options)
    return Path(options["output"])


__all__ = [
    "BugError",
    "CancelledError",
    "Checked",
    "DisagreementError",
    "Doing",
    "Error",
    "Frame",
    "Identity",
    "InputError",
    "NetworkError",
    "OutputError",
    "Peer",
    "PeerBook",
    "PeerError",
    "Policy",
    "RefusedError",
    "Result",
    "UsageError",
    "aio",
    "check",
    "count",
    "filter",
    "id",
    "intersect",
    "prepare",
    "share",
    "sum",
    "union",
]
