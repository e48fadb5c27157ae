"""Encrypted filters, made in advance, for many runs as the receiver by ``dc17``.

    veilset.filter.build(df, key="email", output="ours.filter", capacity=2_000_000)
    veilset.count(df, key="email", role="receiver", peer="hospital-b", filter="ours.filter")

    veilset.filter.export("ours.filter", output="ours.public")  # for senders, if they want it
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._run import NO_DATA, make

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import _options


class Info:
    """What a filter, or the public part of one, is for. ``str()`` is the text of ``veilset filter info``."""

    def __init__(self, native: dict[str, Any]) -> None:
        #: The fingerprint of the one who made it.
        self.owner: str = native["owner"]
        #: How many items it has; ``None`` for a public part, which does not show it.
        self.items: int | None = native["items"]
        #: How many items it can have.
        self.capacity: int = native["capacity"]
        #: The largest set of a sender that it is for.
        self.queries: int = native["queries"]
        self.key_columns: int = native["key_columns"]
        #: How its keys were normalised and encoded.
        self.normalisation: str = native["normalisation"]
        self.cipher: str = native["cipher"]
        #: The digest of its public part, which both parties of a run agree on.
        self.digest: str = native["digest"]
        self._text: str = native["text"]

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


def build(data: Any, **options: Unpack[_options.Build]) -> Path:
    """Makes a filter of the keys of ``data``, and returns its file. After an interruption, the same call goes on."""
    make("filter build", data, options)
    return Path(options["output"])


def update(filter: str | os.PathLike[str], data: Any, **options: Unpack[_options.Update]) -> int:
    """Inserts the keys of ``data`` into a filter, and encrypts all of it afresh: senders need its public part again.

    Returns how many keys were new.
    """
    inserted: int = make("filter update", data, {"filter": filter, **options})["inserted"]
    return inserted


def info(filter: str | os.PathLike[str], **options: Unpack[_options.Own]) -> Info:
    """What a filter, or the public part of one, is for. All of it is checked."""
    return Info(make("filter info", NO_DATA, {"filter": filter, **options}))


def export(filter: str | os.PathLike[str], **options: Unpack[_options.Export]) -> Path:
    """Writes the public part of a filter, for senders, and returns its file."""
    make("filter export", NO_DATA, {"filter": filter, **options})
    return Path(options["output"])


__all__ = ["Info", "build", "export", "info", "update"]
