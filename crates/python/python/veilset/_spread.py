"""Tables that lie with workers: what an engine does with their pieces, which are pyarrow tables.

1. ``hashed``: the rows of a piece that have a key, with the hash of the key and the row's place in the whole table.
2. ``buckets`` and ``ordered`` bring the rows together by hash, so that equal keys are in one piece; ``summed`` is its part
   of what both sides must know before the run.
3. ``shards`` cuts such a piece by the key that both drew, and ``run_lane`` runs the shards of a worker.
4. ``result`` makes the rows of the result of a shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy
import pyarrow
import pyarrow.compute

from . import _native

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The hash of a row's key, and
HASH = "__veilset_hash"
#: the row's place in the whole table.
PLACE = "__veilset_place"
#: Places of one piece are so far from those of the next.
PIECE = 1 << 32

#: An operation and its options, as the native part takes them.
Words = Mapping[str, Any]


def hashed(operation: str, words: Words, table: pyarrow.Table, piece: int) -> pyarrow.Table:
    """The rows that have a key, with its hash and their places."""
    rows, hashes = _native.piece_hashes(operation, words, table)
    numbers: NDArray[Any] = numpy.frombuffer(rows, "<u4")
    kept = table if len(numbers) == len(table) else table.take(pyarrow.array(numbers))
    column = pyarrow.FixedSizeBinaryArray.from_buffers(
        pyarrow.binary(32), len(numbers), [None, pyarrow.py_buffer(hashes)]
    )
    places = pyarrow.array(numbers.astype("i8") + piece * PIECE)
    return kept.append_column(HASH, column).append_column(PLACE, places)


def _hashes(table: pyarrow.Table) -> bytes:
    column = table.column(HASH).combine_chunks()
    if isinstance(column, pyarrow.ChunkedArray):
        column = pyarrow.concat_arrays(column.chunks) if column.num_chunks else pyarrow.array([], pyarrow.binary(32))
    start = column.offset * 32
    return bytes(memoryview(column.buffers()[1])[start : start + 32 * len(column)]) if len(column) else b""


def plain(table: pyarrow.Table) -> pyarrow.Table:
    """The table as it came."""
    return table.drop_columns([name for name in (HASH, PLACE) if name in table.column_names])


def split(table: pyarrow.Table, of: NDArray[Any], number: int) -> list[pyarrow.Table]:
    """The rows of each of so many parts, in their order."""
    order = numpy.argsort(of, kind="stable")
    bounds = numpy.searchsorted(of[order], numpy.arange(number + 1))
    # Copies: a slice would take the whole table along.
    return [table.take(pyarrow.array(order[bounds[i] : bounds[i + 1]])) for i in range(number)]


def buckets(table: pyarrow.Table, number: int) -> list[pyarrow.Table]:
    """The rows by the hashes of their keys: those of a bucket come before those of the next."""
    first: NDArray[Any] = numpy.frombuffer(_hashes(table), ">u2")[::16].astype("i8")
    return split(table, (first * number) >> 16, number)


def ordered(tables: Sequence[pyarrow.Table]) -> pyarrow.Table:
    """These rows, ordered by hash and place."""
    table = pyarrow.concat_tables(tables)
    return table.take(pyarrow.compute.sort_indices(table, [(HASH, "ascending"), (PLACE, "ascending")]))


def summed(operation: str, words: Words, keys: bytes, table: pyarrow.Table) -> tuple[int, int, int, bytes]:
    """The number of items, of rows whose key occurred before, and of rows; and the part of the digests."""
    items, duplicates, sums = _native.piece_sums(operation, words, keys, plain(table))
    return items, duplicates, len(table), sums


def total(parts: Iterable[tuple[int, int, int, bytes]], rows: int, keys: bytes) -> dict[str, Any]:
    """What is known of the whole table, which has so many rows."""
    items, duplicates, keyed = 0, 0, 0
    sums: NDArray[Any] = numpy.zeros(8, "<u8")
    for more, repeated, with_key, part in parts:
        items, duplicates, keyed = items + more, duplicates + repeated, keyed + with_key
        sums = sums + numpy.frombuffer(part, "<u8")
    return {
        "items": items,
        "rows": rows,
        "duplicates": duplicates,
        "skipped": rows - keyed,
        "keys": keys,
        "sums": sums.tobytes(),
    }


def shards(ticket: bytes, number: int, table: pyarrow.Table) -> list[pyarrow.Table]:
    """The rows of each shard."""
    of: NDArray[Any] = numpy.frombuffer(_native.ticket_shards(ticket, _hashes(table)), "<u4")
    return split(table, of, number)


class Hands:
    """What a worker's shards come from and go to."""

    def __init__(
        self,
        piece: Callable[[int], pyarrow.Table],
        keep: Callable[[int, bytes], None],
        stopped: Callable[[], bool],
    ) -> None:
        self._piece = piece
        self.keep = keep
        self.stopped = stopped

    def piece(self, shard: int) -> pyarrow.Table:
        """The rows of a shard."""
        return plain(self._piece(shard))


def result(operation: str, words: Words, learned: bytes, table: pyarrow.Table) -> pyarrow.Table | None:
    """The rows of the result of a shard. Those that are ours have their places."""
    rows = _native.piece_result(operation, words, learned, table.drop_columns([HASH]))
    return None if rows is None else pyarrow.table(rows)


def by_piece(table: pyarrow.Table | None, pieces: int) -> list[pyarrow.Table | None]:
    """The rows of a result by the piece of the whole table that they are of; those of the other side come last."""
    if table is None:
        return [None] * (pieces + 1)
    if PLACE not in table.column_names:
        return [None] * pieces + [table]
    places = table.column(PLACE).fill_null(pieces * PIECE).to_numpy()
    parts: list[pyarrow.Table | None] = []
    parts.extend(split(table, places // PIECE, pieces + 1))
    return parts


def in_order(tables: Sequence[pyarrow.Table | None]) -> pyarrow.Table | None:
    """These rows of a result, in the order of the whole table."""
    some = [table for table in tables if table is not None]
    if not some:
        return None
    table = pyarrow.concat_tables(some, promote_options="permissive")
    if PLACE not in table.column_names:
        return table
    return plain(table.take(pyarrow.compute.sort_indices(table, [(PLACE, "ascending")])))
