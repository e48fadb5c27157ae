"""The options of the functions, for editors and type checkers. ``help(veilset.intersect)`` explains them."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal, TypedDict, Union

if TYPE_CHECKING:
    from ._people import Identity, PeerBook, Policy
    from ._run import Doing

FilePath = Union[str, os.PathLike[str]]
#: A column, or several in their order: a list, a tuple, an index or a series.
Columns = Union[str, Iterable[str]]
Seconds = Union[int, float, datetime.timedelta]


class Keys(TypedDict, total=False):
    """How keys are read."""

    key: Columns
    normalize: Columns
    encoding: Literal["utf8", "bytes"]
    empty_keys: Literal["error", "skip", "keep"]
    duplicates: Literal["first", "error", "add", "all"]


class OfFiles(Keys, total=False):
    """How a file is read. These options are refused for frames."""

    format: str
    delimiter: str
    no_header: bool
    escape: str
    no_quotes: bool
    multiline_keys: bool


class Own(TypedDict, total=False):
    """The identity, threads and output of work in advance."""

    identity: Identity | FilePath
    threads: int
    progress: bool | Callable[[Doing], None]


class ToFile(TypedDict):
    """The file for the result of work in advance."""

    output: FilePath


class Prepare(ToFile, OfFiles, Own, total=False):
    """The options of prepare."""

    force: bool
    pad_to: int
    union_sender: bool
    group: str
    prepared_ledger: FilePath


class Build(ToFile, OfFiles, Own, total=False):
    """The options of filter.build."""

    force: bool
    for_: int
    capacity: int
    cipher: str


class Update(OfFiles, Own, total=False):
    """The options of filter.update."""


class Export(ToFile, Own, total=False):
    """The options of filter.export."""

    force: bool


class OfAny(Keys, total=False):
    """The options of all operations, wherever the table is."""

    role: Literal["receiver", "sender"]
    peer: str
    listen: str
    connect: str
    proxy: str
    identity: Identity | FilePath
    book: PeerBook | FilePath
    policy: Policy | FilePath
    audit_log: FilePath | None
    protocol: str
    prefer: Literal["time", "bytes", "dollars"]
    assume: str | Iterable[str]
    group: str
    pad_to: int
    threads: int
    force: bool
    report: FilePath
    connect_timeout: Seconds
    idle_timeout: Seconds
    max_peer_items: int
    allow_small: bool
    checked: FilePath
    progress: bool | Callable[[Doing], None]


class Common(OfAny, OfFiles, total=False):
    """The options of all operations on a local table."""

    parties: FilePath
    me: str
    cipher: str
    output: FilePath
    output_format: str
    for_spreadsheets: bool
    prepared: FilePath
    prepared_ledger: FilePath
    filter: FilePath
    insecure_plaintext: bool


class InRows(TypedDict, total=False):
    """The options of operations that send columns, and can be cut into shards."""

    shards: int
    job: FilePath
    resume: bool

    send_columns: Columns
    receive_columns: Columns | Mapping[str, str]
    max_row: int
    both: bool


class Intersect(Common, InRows, total=False):
    """The options of intersect."""

    malicious_sender: bool


class Union_(Common, InRows, total=False):
    """The options of union."""

    reveal_count_to_sender: bool


class OnWorkers(OfAny, InRows, total=False):
    """The options of the operations of veilset.dask and veilset.spark."""


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


#: The class of each operation, and of each command for work in advance.
OF = {
    "intersect": Intersect,
    "union": Union_,
    "count": Count,
    "sum": Sum,
    "id": Id,
    "share": Share,
    "prepare": Prepare,
    "filter build": Build,
    "filter update": Update,
    "filter info": Own,
    "filter export": Export,
}
