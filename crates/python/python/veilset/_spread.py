"""Tables spread over workers: the steps that an engine takes with their pieces, which are pyarrow tables.

1. ``hashed``: the rows of a piece that have a key, with the hash of the key and the row's place in the whole table.
2. ``buckets`` and ``ordered`` bring the rows together by hash, so that equal keys are in one piece; ``summed`` is the piece's
   contribution to the facts that both sides need before the run.
3. ``shards`` cuts such a piece with the key that both sides drew, and ``run_lane`` runs the shards of a worker.
4. ``result`` makes the result rows of a shard, with the column types that ``text_keys`` determines from all shards.

An engine recomputes lost pieces. ``marks`` and ``checked`` notice if it then gets other rows, which would make a wrong result.

``Agreed`` is the side that agrees with the other party. It has a crew, provided by the engine:

- ``cut(key)`` takes the key of the shards.
- ``lanes()`` returns how many shards can run at the same time, and the numbers of the lanes that have a place (``None``: all).
- ``run(tickets)`` runs lanes. It yields ``(shard, learned, "")`` for a result, ``(None, b"", why)`` for a lane that failed, and
  ``None`` from time to time.
- ``result(shard, learned)`` takes the result of a shard, when the job is complete.
- ``frame()`` makes the frame of the results. The files of the job are deleted only then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.ipc

from . import _native, _run
from ._errors import Error, told
from ._errors import make as make_error
from ._errors import usage as usage
from ._frames import NAME, SEE, Source
from ._given import check_on_workers, given_of, worded

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The prefix of the names of all columns that are added to a table.
OURS = "__veilset_"
#: The column with the hash of a row's key.
HASH = f"{OURS}hash"
#: The column with the row's place in the whole table.
PLACE = f"{OURS}place"
#: The distance between the places of one piece and the next.
PIECE = 1 << 32

#: The time in seconds that the workers of a lane wait for each other, unless ``connect_timeout`` is shorter.
MEET = 60

#: The options of an operation, as the native part takes them.
Words = Mapping[str, Any]


def input_error(text: str, **fields: Any) -> Error:
    """Returns an error about the table."""
    return make_error("input", text, {"exit_code": 3, **fields})


def check_names(names: Iterable[str]) -> None:
    """Refuses a table with a column whose name has our prefix, before anything is done with it."""
    for name in names:
        if name.startswith(OURS):
            raise input_error(
                f"{NAME}, column \"{name}\": names that begin with {OURS} are for columns that veilset adds. Rename it",
                file=NAME,
                column=name,
            )


def unhad(error: BaseException, what: str) -> Error:
    """Returns the error for rows that an engine could not provide. The raised exception may name a cell, and is not kept."""
    if isinstance(error, Error):
        return error
    said = told(error)
    if said != type(error).__name__:
        # The error concerns the cluster, and not the rows.
        return make_error("output", f"the workers could not be used: {said}", {"exit_code": 7})
    return input_error(f"{what}: the rows could not be obtained ({said}). {SEE}", file=NAME)


@contextlib.contextmanager
def in_partition(at: int) -> Iterator[None]:
    """Adds the partition to errors, whose rows are counted within it."""
    try:
        yield
    except Error as e:
        e.args = (f"partition {at} of {e}", *e.args[1:])
        raise


class Crew(Protocol):
    """The engine's interface for the side that agrees."""

    def frame(self) -> Any:
        """Returns the frame of the result, all of whose rows exist by then."""


class Agreed:
    """The side that agrees with the other party: its options, and the keys of the digests of its set."""

    def __init__(self, operation: str, options: Mapping[str, Any], names: Sequence[str]) -> None:
        self.operation = operation
        self.given = given_of(options, lambda: names)
        self.words = worded({name: value for name, value in self.given.items() if name != "progress"})
        check_on_workers(self.given, operation)
        self.keys = _native.digest_keys(self.words.get("identity"))

    def of_workers(self) -> dict[str, Any]:
        """Returns the options for workers."""
        return {**self.words, "connect_timeout": min(float(self.words.get("connect_timeout", MEET)), MEET)}

    def run(self, whole: Mapping[str, Any], crew: Crew) -> _run.Result:
        """Runs the job on a table with these known facts, with these workers."""
        source = Source(None, None, lambda frame: frame)
        started = _run.Started(
            lambda words, _: _native.Run.spread(self.operation, words, whole, crew), source, self.given
        )
        started.wait_for_the_end()
        outcome = started.outcome()
        try:
            frame = crew.frame()
        except Exception as e:
            unmade = self._unmade(told(e))
        else:
            return _run.Result(outcome, source, frame)
        # Raised outside the handler, so that the handled exception is not attached, perhaps with a cell in it.
        raise unmade

    def _unmade(self, why: str) -> Error:
        """Returns the error for a result whose rows cannot be made. The files of the job are still there."""
        job = self.words.get("job")
        back = (
            f"All that it is made of is in {job}: go on with it with resume on both sides. If the other side has no such folder"
            " any more, begin a new job"
            if job
            else "Run again. With job, what it is made of would be kept"
        )
        what = f"the run is done, but the rows of its result could not be made: {why}"
        return make_error("output", f"{what.rstrip('.')}. {back}", {"exit_code": 7})


class Places:
    """The places where the workers of both sides meet: the address of each lane. The side that connects may instead give only
    their number, or nothing, if a proxy routes to them by name."""

    def __init__(self, job: Agreed, lanes: Sequence[str] | int | None, route: str | None) -> None:
        self.listens = "listen" in job.given
        self.route = route
        if route is not None:
            _native.label(0, route)
        self.addresses: list[str] | None = None
        self.at_once: int | None = None
        self._connect, self._proxy = job.given.get("connect"), job.given.get("proxy")
        if isinstance(lanes, (list, tuple)) and lanes:
            self.addresses, self.at_once = [str(address) for address in lanes], len(lanes)
        elif self.listens:
            raise usage(
                "lanes is missing: the side that listens says at which address the worker of each lane does, for instance"
                ' "0.0.0.0:7001"'
            )
        elif route is None:
            raise usage("lanes is missing: the addresses of the other side's workers. Or give route, if a proxy leads to them")
        elif isinstance(lanes, int):
            self.at_once = lanes

    def numbers(self) -> list[int] | None:
        """Returns the lanes that have a place; ``None`` for all."""
        return None if self.addresses is None else list(range(len(self.addresses)))

    def of(self, lane: int) -> dict[str, str | None]:
        """Returns the place of a lane, as the native part takes it."""
        address = self._connect if self.addresses is None else self.addresses[lane]
        label = None if self.route is None else _native.label(lane, self.route)
        if self.listens:
            return {"listen": address, "connect": None, "label": label, "proxy": None}
        return {"listen": None, "connect": address, "label": label, "proxy": self._proxy}


def hashed(operation: str, words: Words, table: pyarrow.Table, piece: int, named: Sequence[str] = ()) -> pyarrow.Table:
    """Returns the rows that have a key, each with the hash of its key and its place. ``named`` are columns that are not handed over."""
    given = table
    for name in named:
        given = given.append_column(name, pyarrow.nulls(len(table)))
    rows, hashes = _native.piece_hashes(operation, words, _aligned(given))
    numbers: NDArray[Any] = numpy.frombuffer(rows, "<u4")
    kept = table if len(numbers) == len(table) else table.take(pyarrow.array(numbers))
    # The type is binary of variable length, which all engines support.
    ends = pyarrow.py_buffer(numpy.arange(len(numbers) + 1, dtype="<i4") * 32)
    column = pyarrow.BinaryArray.from_buffers(pyarrow.binary(), len(numbers), [None, ends, pyarrow.py_buffer(hashes)])
    places = pyarrow.array(numbers.astype("i8") + piece * PIECE)
    return kept.append_column(HASH, column).append_column(PLACE, places)


def _hashes(table: pyarrow.Table) -> bytes:
    chunks = table.column(HASH).cast(pyarrow.binary(32)).chunks
    column = pyarrow.concat_arrays(chunks) if chunks else pyarrow.array([], pyarrow.binary(32))
    start = column.offset * 32
    return bytes(memoryview(column.buffers()[1])[start : start + 32 * len(column)]) if len(column) else b""


def _aligned(table: pyarrow.Table) -> pyarrow.Table:
    """Returns the table with the memory alignment that Arrow wants. Data that an engine unpacked from a message may begin at
    any byte."""
    chunks = [chunk for column in table.columns for chunk in column.chunks]
    if all(buffer is None or buffer.address % 8 == 0 for chunk in chunks for buffer in chunk.buffers()):
        return table
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return pyarrow.ipc.open_stream(sink.getvalue()).read_all()


def plain(table: pyarrow.Table) -> pyarrow.Table:
    """Returns the table without the added columns."""
    return table.drop_columns([name for name in (HASH, PLACE) if name in table.column_names])


def split(table: pyarrow.Table, of: NDArray[Any], number: int) -> list[pyarrow.Table]:
    """Splits the rows into ``number`` parts, in their order; ``of`` is the part of each row."""
    order = numpy.argsort(of, kind="stable")
    bounds = numpy.searchsorted(of[order], numpy.arange(number + 1))
    # The parts are copies: a slice would keep the whole table in memory.
    return [table.take(pyarrow.array(order[bounds[i] : bounds[i + 1]])) for i in range(number)]


def buckets(table: pyarrow.Table, number: int) -> list[pyarrow.Table]:
    """Splits the rows by the hashes of their keys: the hashes in a bucket are less than those in the next."""
    first: NDArray[Any] = numpy.frombuffer(_hashes(table), ">u2")[::16].astype("i8")
    return split(table, (first * number) >> 16, number)


def ordered(tables: Sequence[pyarrow.Table]) -> pyarrow.Table:
    """Returns these rows, ordered by hash and place."""
    table = pyarrow.concat_tables(tables)
    return table.take(pyarrow.compute.sort_indices(table, [(HASH, "ascending"), (PLACE, "ascending")]))


#: The numbers of items, of rows whose key occurred before, and of rows; the part of the digests, the mark, and the counts of
#: keys that may cost matches.
Summed = tuple[int, int, int, bytes, bytes, bytes]


def summed(operation: str, words: Words, keys: bytes, table: pyarrow.Table) -> Summed:
    """Returns the contribution of a piece from ``ordered`` to the facts that both sides need before the run."""
    items, duplicates, sums, profile = _native.piece_sums(operation, words, keys, _aligned(plain(table)))
    mark = _marks(table, numpy.zeros(len(table), "i8"), 1).tobytes()
    return items, duplicates, len(table), sums, mark, profile


def total(parts: Iterable[Summed], rows: int, keys: bytes) -> dict[str, Any]:
    """Returns the known facts about the whole table, which has ``rows`` rows."""
    items, duplicates, keyed = 0, 0, 0
    sums: NDArray[Any] = numpy.zeros(8, "<u8")
    mark: NDArray[Any] = numpy.zeros(5, "<u8")
    profile: NDArray[Any] = numpy.zeros(7, "<u8")
    for more, repeated, with_key, part, part_of_mark, counts in parts:
        items, duplicates, keyed = items + more, duplicates + repeated, keyed + with_key
        sums = sums + numpy.frombuffer(part, "<u8")
        mark = mark + numpy.frombuffer(part_of_mark, "<u8")
        profile = profile + numpy.frombuffer(counts, "<u8")
    return {
        "items": items,
        "rows": rows,
        "duplicates": duplicates,
        "skipped": rows - keyed,
        "keys": keys,
        "sums": sums.tobytes(),
        "mark": mark.tobytes(),
        "profile": profile.tolist(),
    }


def shards_of(key: bytes, number: int, table: pyarrow.Table) -> NDArray[Any]:
    """Returns the shard of each row, among ``number`` shards under this key."""
    of: NDArray[Any] = numpy.frombuffer(_native.piece_shards(key, number, _hashes(table)), "<u4")
    return of


def shards(key: bytes, number: int, table: pyarrow.Table) -> list[pyarrow.Table]:
    """Returns the rows of each shard."""
    return split(table, shards_of(key, number, table), number)


def _marks(table: pyarrow.Table, of: NDArray[Any], number: int) -> NDArray[Any]:
    """Returns, for each shard, the sum of the hashes of its rows, and their number."""
    marks: NDArray[Any] = numpy.zeros((number, 5), "<u8")
    hashes: NDArray[Any] = numpy.frombuffer(_hashes(table), "<u8").reshape(-1, 4)
    numpy.add.at(marks[:, :4], of, hashes)
    marks[:, 4] = numpy.bincount(of, minlength=number)
    return marks


def marks(key: bytes, number: int, table: pyarrow.Table) -> bytes:
    """Returns this piece's contribution to the mark of each shard."""
    return _marks(table, shards_of(key, number, table), number).tobytes()


def all_marks(parts: Iterable[bytes], number: int, whole: Mapping[str, Any]) -> list[bytes]:
    """Returns the mark of each shard, if the marks agree with the whole table."""
    all: NDArray[Any] = numpy.zeros((number, 5), "<u8")
    for part in parts:
        all = all + numpy.frombuffer(part, "<u8").reshape(number, 5)
    if all.sum(axis=0).tobytes() != whole["mark"]:
        raise _changed("the table")
    return [mark.tobytes() for mark in all]


def checked(table: pyarrow.Table, shard: int, mark: bytes) -> pyarrow.Table:
    """Returns these rows, if they have this mark."""
    if _marks(table, numpy.zeros(len(table), "i8"), 1).tobytes() != mark:
        raise _changed(f"shard {shard}")
    return table


def _changed(what: str) -> Error:
    return input_error(
        f"{what} has other rows now than at first: the data differ each time they are computed. Persist or write them first"
    )


class Hands:
    """The source of a worker's shards, and the sink for their results."""

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
        """Returns the rows of a shard."""
        return _aligned(plain(self._piece(shard)))


def text_keys(operation: str, words: Words, learned: Iterable[bytes], empty: pyarrow.Table) -> list[int]:
    """Returns the places in the key of the columns that are text in the whole result, because a key learned in one of these
    shards is not a value of their type. ``empty`` is a table like all pieces, without rows."""
    return sorted(_native.piece_text_keys(operation, words, list(learned), _aligned(plain(empty))))


def result(
    operation: str, words: Words, learned: bytes, as_text: list[int], table: pyarrow.Table
) -> pyarrow.Table | None:
    """Returns the result rows of a shard. Our own rows have their places, and the hashes of their keys."""
    rows = _native.piece_result(operation, words, learned, as_text, _aligned(table))
    return None if rows is None else pyarrow.table(rows)


def same_rows(hashed: pyarrow.Table, rows: pyarrow.Table, what: str) -> None:
    """Refuses result rows that a recomputed piece of the table does not have at their places."""
    places, there = rows.column(PLACE).to_numpy(), hashed.column(PLACE).to_numpy()
    at = numpy.minimum(numpy.searchsorted(there, places), max(len(there) - 1, 0))
    if len(places) and (
        not len(there)
        or (there[at] != places).any()
        or _hashes(hashed.take(pyarrow.array(at))) != _hashes(rows)
    ):
        raise _changed(what)


def by_piece(table: pyarrow.Table | None, pieces: int) -> list[pyarrow.Table | None]:
    """Returns the result rows by the piece of the whole table to which they belong; the other side's rows come last."""
    if table is None:
        return [None] * (pieces + 1)
    if PLACE not in table.column_names:
        return [None] * pieces + [table]
    places = table.column(PLACE).fill_null(pieces * PIECE).to_numpy()
    parts: list[pyarrow.Table | None] = []
    parts.extend(split(table, places // PIECE, pieces + 1))
    return parts


def in_order(tables: Sequence[pyarrow.Table | None]) -> pyarrow.Table | None:
    """Returns these result rows, in the order of the whole table."""
    some = [table for table in tables if table is not None]
    if not some:
        return None
    table = pyarrow.concat_tables(some)
    if PLACE not in table.column_names:
        return table
    return table.take(pyarrow.compute.sort_indices(table, [(PLACE, "ascending")]))
