"""Encrypted filters, made in advance, for many runs as the receiver with the protocol ``dc17``.

    veilset.filter.build(df, key="email", output="ours.filter", capacity=2_000_000)
    veilset.count(df, key="email", role="receiver", peer="hospital-b", filter="ours.filter")

    veilset.filter.export("ours.filter", output="ours.public")  # for senders, if they want it
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._help import with_options
from ._run import NO_DATA, make

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import _options


@dataclass(frozen=True, repr=False)
class Info:
    """What a filter, or the public part of one, is for. ``str()`` is all of it as text."""

    #: The fingerprint of the identity that made it.
    owner: str
    #: The number of items; ``None`` for a public part, which does not show it.
    items: int | None
    #: The largest number of items that it can have.
    capacity: int
    #: The size of the largest set of a sender that it is for.
    queries: int
    key_columns: int
    #: The normalisation and encoding of its keys.
    normalisation: str
    cipher: str
    #: The digest of its public part, which both parties of a run agree on.
    digest: str
    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


@with_options("filter build")
def build(data: Any, **options: Unpack[_options.Build]) -> Path:
    """Makes a filter of the keys of ``data``, and returns its file. After an interruption, the same call resumes."""
    make("filter build", data, options)
    return Path(options["output"])


@with_options("filter update")
def update(filter: str | os.PathLike[str], data: Any, **options: Unpack[_options.Update]) -> int:
    """Inserts the keys of ``data`` into a filter, and encrypts all of it afresh: senders need its public part again.

    Returns how many keys were new.
    """
    inserted: int = make("filter update", data, {"filter": filter, **options})["inserted"]
    return inserted


@with_options("filter info")
def info(filter: str | os.PathLike[str], **options: Unpack[_options.Own]) -> Info:
    """What a filter, or the public part of one, is for. All of it is checked."""
    return Info(**make("filter info", NO_DATA, {"filter": filter, **options}))


@with_options("filter export")
def export(filter: str | os.PathLike[str], **options: Unpack[_options.Export]) -> Path:
    """Writes the public part of a filter, for senders, and returns its file."""
    make("filter export", NO_DATA, {"filter": filter, **options})
    return Path(options["output"])


__all__ = ["Info", "build", "export", "info", "update"]
