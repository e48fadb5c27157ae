"""The options of the operations, for editors and type checkers. They mean what `veilset OPERATION --help` says of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import Required

    from ._people import Identity, PeerBook, Policy
    from ._run import Doing

FilePath = Union[str, "os.PathLike[str]"]
Columns = Union[str, Sequence[str]]


class Keys(TypedDict, total=False):
    """How keys are read."""

    key: Columns
    normalize: Columns
    encoding: Literal["utf8", "bytes"]
    empty_keys: Literal["error", "skip", "keep"]
    duplicates: str
    format: str
    delimiter: str
    no_header: bool


class Own(TypedDict, total=False):
    """Who makes something in advance, and on what."""

    identity: Identity | FilePath
    threads: int
    progress: bool | Callable[[Doing], None]


class Prepare(Keys, Own, total=False):
    """The options of prepare."""

    output: Required[FilePath]
    force: bool
    pad_to: int
    union_sender: bool
    group: str
    prepared_ledger: FilePath


class Build(Keys, Own, total=False):
    """The options of filter.build."""

    output: Required[FilePath]
    force: bool
    for_: int
    capacity: int
    cipher: str


class Update(Keys, Own, total=False):
    """The options of filter.update."""


class Export(Own, total=False):
    """The options of filter.export."""

    output: Required[FilePath]
    force: bool


class Common(Keys, total=False):
    """The options of all operations."""

    role: Literal["receiver", "sender"]
    peer: str
    listen: str
    connect: str
    proxy: str
    identity: Identity | FilePath
    book: PeerBook | FilePath
    policy: Policy | FilePath
    audit_log: FilePath | None
    parties: FilePath
    me: str
    protocol: str
    prefer: Literal["time", "bytes", "dollars"]
    assume: str | Sequence[str]
    group: str
    cipher: str
    pad_to: int
    threads: int
    force: bool
    report: FilePath
    output: FilePath
    output_format: str
    for_spreadsheets: bool
    connect_timeout: int
    idle_timeout: int
    max_peer_items: int
    allow_small: bool
    checked: FilePath
    prepared: FilePath
    prepared_ledger: FilePath
    filter: FilePath
    insecure_plaintext: bool
    progress: bool | Callable[[Doing], None]


class Rows(Common, total=False):
    """The options of operations that send columns, and can be cut into shards."""

    shards: int
    job: FilePath
    resume: bool

    send_columns: Columns
    receive_columns: Columns | Mapping[str, str]
    max_row: int
    both: bool


class Intersect(Rows, total=False):
    """The options of intersect."""

    malicious_sender: bool


class Union_(Rows, total=False):
    """The options of union."""

    reveal_count_to_sender: bool


class Count(Common, total=False):
    """The options of count."""

    both: bool


class Sum(Common, total=False):
    """The options of sum."""

    values: str
    scale: int
    modulus: Literal[64, 128]
    min_count: int


class Id(Common, total=False):
    """The options of id."""

    ids: FilePath
    id_column: str


class Share(Common, total=False):
    """The options of share."""

    values: str
    scale: int
    map: FilePath
    max_row: int
