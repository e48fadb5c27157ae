"""Private set operations between organisations: combine lists without showing them to each other.

    import veilset

    r = veilset.intersect(df, key="email", role="receiver", peer="hospital-b", listen="0.0.0.0:7000")
    r.frame    # the rows of df that the other party has too: a frame of the same kind
    r.learned  # what each party learned, in sentences

``df`` is a pandas, Polars or pyarrow frame, a DuckDB relation, any object with ``__arrow_c_stream__``, or the name of a
file. ``help(veilset.intersect)`` has its options; identity, address book, policy and audit log apply by default as for the program.
``audit_log=None`` keeps no log. ``print(veilset.guide())`` lists the pages of the guide.

:func:`prepare` and :mod:`veilset.filter` do the slow part of a run in advance; :mod:`veilset.aio` has coroutines.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _native
from . import aio as aio
from . import filter as filter  # noqa: A004
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
from ._help import with_options
from ._native import Frame
from ._people import Identity, Peer, PeerBook, Policy
from ._run import Checked, Doing, Party, Result, run
from ._run import check as _check
from ._run import make as _make

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import _options

#: The version of this package.
__version__: str = _native.VERSION


@with_options("intersect")
def intersect(data: Any, **options: Unpack[_options.Intersect]) -> Result:
    """The rows of the receiver whose keys the sender has too. Only the receiver learns which, unless ``both``."""
    return run("intersect", data, options)


@with_options("union")
def union(data: Any, **options: Unpack[_options.Union_]) -> Result:
    """The receiver's rows and the sender's new keys, without showing the receiver which ones both have."""
    return run("union", data, options)


@with_options("count")
def count(data: Any, **options: Unpack[_options.Count]) -> Result:
    """How many keys both have: ``matches``."""
    return run("count", data, options)


@with_options("sum")
def sum(data: Any, **options: Unpack[_options.Sum]) -> Result:  # noqa: A001
    """The sum of the sender's values over the keys that both have: ``matches`` and ``sum``."""
    return run("sum", data, options)


@with_options("id")
def id(data: Any, **options: Unpack[_options.Id]) -> Result:  # noqa: A001
    """Our rows with identifiers that are equal where the keys of both are; nobody learns which are."""
    return run("id", data, options)


@with_options("share")
def share(data: Any, **options: Unpack[_options.Share]) -> Result:
    """Random shares of the matching keys or values, for a further computation; neither party learns anything."""
    return run("share", data, options)


@overload
def check(operation: Literal["intersect"], data: Any, **options: Unpack[_options.Intersect]) -> Checked: ...
@overload
def check(operation: Literal["union"], data: Any, **options: Unpack[_options.Union_]) -> Checked: ...
@overload
def check(operation: Literal["count"], data: Any, **options: Unpack[_options.Count]) -> Checked: ...
@overload
def check(operation: Literal["sum"], data: Any, **options: Unpack[_options.Sum]) -> Checked: ...
@overload
def check(operation: Literal["id"], data: Any, **options: Unpack[_options.Id]) -> Checked: ...
@overload
def check(operation: Literal["share"], data: Any, **options: Unpack[_options.Share]) -> Checked: ...
@with_options("intersect", "union", "count", "sum", "id", "share")
def check(operation: str, data: Any, **options: Any) -> Checked:
    """Agrees with the other party on a run, and computes nothing. Returns what would run, what it would cost and disclose.

    The options are those of the operation.
    """
    return _check(operation, data, options)


@with_options("prepare")
def prepare(data: Any, **options: Unpack[_options.Prepare]) -> Path:
    """Computes our half of a run before the other party is met, and returns its file.

    The half is for one run with the same data: ``prepared=`` that file. The run deletes it.
    """
    _make("prepare", data, options)
    return Path(options["output"])


def guide(page: str | None = None) -> str:
    """A page of the guide, for instance ``print(veilset.guide("refused"))``; without a name, the list of pages."""
    return _native.guide(page)


# Functions that would hide built-in ones are not exported: filter, id and sum.
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
    "Party",
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
    "guide",
    "intersect",
    "prepare",
    "share",
    "union",
    "__version__",
]
