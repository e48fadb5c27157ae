"""The options of the operations, for editors and type checkers. They mean what `veilset OPERATION --help` says of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict, Union

if TYPE_CHECKING:
    from ._people import Identity, PeerBook, Policy
    from ._run import Doing

FilePath = Union[str, "os.PathLike[str]"]
Columns = Union[str, Sequence[str]]


class Common(TypedDict, total=False):
    """The options of all operations."""

    key: Columns
    role: Literal["receiver", "sender"]
    peer: str
    listen: str
    connect: str
    identity: Identity | FilePath
    book: PeerBook | FilePath
    policy: Policy | FilePath
    audit_log: FilePath | None
    parties: FilePath
    me: str
    protocol: str
    group: str
    cipher: str
    normalize: Columns
    encoding: Literal["utf8", "bytes"]
    empty_keys: Literal["error", "skip", "keep"]
    duplicates: str
    pad_to: int
    format: str
    delimiter: str
    threads: int
    force: bool
    report: FilePath
    output: FilePath
    output_format: str
    for_spreadsheets: bool
    connect_timeout: int
    idle_timeout: int
    max_peer_items: int
    prepared: FilePath
    prepared_ledger: FilePath
    filter: FilePath
    insecure_plaintext: bool
    progress: bool | Callable[[Doing], None]


class Rows(Common, total=False):
    """The options of operations that send columns."""

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
