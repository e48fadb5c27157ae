"""Operations on Dask: the table is in a cluster, and its workers compute.

    import veilset.dask

    r = veilset.dask.intersect(ddf, client=client, shards=64, key="email", role="receiver", peer="hospital-b",
                               listen="0.0.0.0:7000", lanes={"w0": "0.0.0.0:7001", "w1": "0.0.0.0:7002"})
    r.frame    # a Dask data frame

The options are those of :func:`veilset.intersect` and :func:`veilset.union`. The process that calls this has the identity, and
agrees with the other party; the policy and the log are here. ``job`` keeps the results of shards until the job is complete, and
``resume`` continues one that broke off, whatever happened to the workers.

``lanes`` says where the workers of both sides meet. The side that listens gives the name or the address of each of its workers,
and where it listens: lane 0 is the first of them. The side that connects gives the addresses of the lanes, or with ``route``
only their number: all lanes are then reached at the address of ``connect``, where a proxy routes by the name that a connection
asks for, ``sNNN.ROUTE.veilset`` for lane NNN.

A worker that dies loses the shards that it had not completed; they run again.

Our rows come back from the frame itself, as :func:`veilset.intersect` and :func:`veilset.union` return them for pandas: in an
intersection with their index, and with the divisions of the frame. A union renumbers its rows, in each partition from 0. Only
the columns that the options name are read and brought together.

A task of ours that fails returns the error in place of its result. If it raised the error, the worker would log its arguments,
including rows and keys of the job.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import dask
import dask.dataframe
import distributed
import pyarrow

from . import _frames, _native, _options, _spread
from ._errors import Error, make, told
from ._help import with_options
from ._run import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["intersect", "union"]

#: The time, in seconds, to wait for results before checking the workers.
_TICK = 0.2

Lanes = Mapping[str, str] | Sequence[str] | int | None


@with_options("intersect", typed=_options.OnWorkers)
def intersect(
    data: dask.dataframe.DataFrame,
    *,
    client: distributed.Client | None = None,
    lanes: Lanes = None,
    route: str | None = None,
    **options: Unpack[_options.OnWorkers],
) -> Result:
    """The rows of the receiver whose keys the sender has too. Only the receiver learns which, unless ``both``."""
    return _run_on("intersect", data, client, lanes, route, options)


@with_options("union", typed=_options.OnWorkers)
def union(
    data: dask.dataframe.DataFrame,
    *,
    client: distributed.Client | None = None,
    lanes: Lanes = None,
    route: str | None = None,
    **options: Unpack[_options.OnWorkers],
) -> Result:
    """The receiver's rows and the sender's new keys, without showing the receiver which ones both have."""
    return _run_on("union", data, client, lanes, route, options)


def _run_on(
    operation: str,
    data: Any,
    client: distributed.Client | None,
    lanes: Lanes,
    route: str | None,
    options: Mapping[str, Any],
) -> Result:
    if not isinstance(data, dask.dataframe.DataFrame):
        raise _spread.usage(
            f"a {type(data).__name__} is no Dask data frame. Make one with dask.dataframe, or use veilset.{operation}"
        )
    job = _spread.Agreed(operation, options, [str(label) for label in data.columns])
    client = client or _default_client()
    table = _Table(_Columns.of(operation, job, data), job.words, client)
    crew = _Crew(job, table, lanes, route)
    return job.run(table.gather(data, job.keys), crew)


def _default_client() -> distributed.Client:
    try:
        found: distributed.Client = distributed.default_client()
        return found
    except ValueError:
        pass
    raise _spread.usage("there is no client of a cluster. Make a distributed.Client first, or give one with client")


class _Wrong(NamedTuple):
    """An error of a task, in place of its result."""

    error: Error


def _quietly(do: Callable[..., Any], *given: Any) -> Any:
    """Calls ``do`` with the results of earlier tasks, or returns the first error among them."""
    for one in given:
        for part in one if isinstance(one, list) else [one]:
            if isinstance(part, _Wrong):
                return part
    try:
        return do(*given)
    except Error as e:
        return _Wrong(e.with_traceback(None))
    except Exception as e:
        return _Wrong(make("output", f"a worker could not do its part: {told(e)}", {"exit_code": 7}))


def _right(value: Any) -> Any:
    """Returns the result of a task, or raises its error."""
    if isinstance(value, _Wrong):
        raise value.error
    return value


class _Columns(NamedTuple):
    """The known facts about the columns of all partitions."""

    operation: str
    #: The names of the columns.
    labels: list[str]
    #: The columns that are read.
    looked: _frames.Looked

    @classmethod
    def of(cls, operation: str, job: _spread.Agreed, data: Any) -> _Columns:
        """Returns the columns of a frame."""
        labels = _frames.labels_of(data._meta, operation == "union")
        _spread.check_names(labels)
        return cls(operation, labels, _frames.looked_at(job.given))


class _Table:
    """The table, in pieces on the workers."""

    def __init__(self, columns: _Columns, words: dict[str, Any], client: distributed.Client) -> None:
        self.columns, self.words, self.client = columns, words, client
        self.operation = columns.operation
        self.number = int(words["shards"])
        #: The partitions without their rows.
        self.heads: list[Any] = []
        #: The partitions with their rows, from which the rows of the result are taken.
        self.partitions: list[Any] = []
        #: The bounds of the partitions, by the index, if they are known.
        self.divisions: tuple[Any, ...] | None = None
        #: The Arrow types of the columns that are read.
        self.schema: pyarrow.Schema = pyarrow.schema([])
        self._buckets: list[Any] = []
        self.shards: list[Any] = []
        self.marks: list[bytes] = []
        self._whole: dict[str, Any] = {}

    def submit(self, do: Callable[..., Any], *given: Any) -> Any:
        """Runs this on a worker; an error becomes the task's result."""
        name = getattr(do, "__name__", type(do).__name__).strip("_").lower()
        return self.client.submit(_quietly, do, *given, key=f"veilset-{name}-{uuid.uuid4()}")

    def gathered(self, futures: Any) -> Any:
        """Returns the results of these tasks, or raises their first error."""
        try:
            values = self.client.gather(futures)
        except Exception as e:
            failed = [at for at, part in enumerate(self.partitions) if part.status == "error"]
            what = f"partition {failed[0]} of {_frames.NAME}" if failed else _frames.NAME
            unhad = _spread.unhad(e, what)
        else:
            return [_right(value) for value in values]
        # Raised outside the handler, so that the handled exception is not attached.
        raise unhad

    def gather(self, data: Any, keys: bytes) -> dict[str, Any]:
        """Brings equal keys together. Returns the known facts about the whole table."""
        submit, words = self.submit, self.words
        self.divisions = data.divisions if data.known_divisions else None
        self.partitions = self.client.compute(data.to_delayed())
        handed = [submit(_handed, self.columns, part, at) for at, part in enumerate(self.partitions)]
        known = self.gathered([submit(_known, part, table) for part, table in zip(self.partitions, handed)])
        self.heads = [head for _, head, _ in known]
        self.schema = _one_schema([schema for _, _, schema in known])
        number = self._number_of_buckets()
        cuts = [submit(_cut, self.hash, table, at, number) for at, table in enumerate(handed)]
        self._buckets = [submit(_spread.ordered, [submit(_item, cut, at) for cut in cuts]) for at in range(number)]
        sums = [submit(_spread.summed, self.operation, words, keys, table) for table in self._buckets]
        self._whole = _spread.total(self.gathered(sums), sum(rows for rows, _, _ in known), keys)
        return self._whole

    def _number_of_buckets(self) -> int:
        """Returns the number of partitions, but at most 256, and at most the number of shards, each of which fits into a
        worker's memory, or of the workers' threads if that is larger. Each partition is cut into this many buckets: without a
        limit, the work would grow with the square of the number of partitions."""
        slots: int = sum(self.client.nthreads().values())
        return min(max(len(self.partitions), 1), max(self.number, slots), 256)

    def cut(self, key: bytes) -> None:
        """Brings the rows of each shard together."""
        submit = self.submit
        marks = [submit(_spread.marks, key, self.number, table) for table in self._buckets]
        cuts = [submit(_spread.shards, key, self.number, table) for table in self._buckets]
        self._buckets = []
        self.shards = [
            submit(pyarrow.concat_tables, [submit(_item, cut, at) for cut in cuts]) for at in range(self.number)
        ]
        self.marks = _spread.all_marks(self.gathered(marks), self.number, self._whole)

    @property
    def hash(self) -> _Hash:
        """Returns the first step on a partition."""
        return _Hash(self.columns, self.words, self.schema)


class _Crew:
    """The workers, and their results."""

    def __init__(self, job: _spread.Agreed, table: _Table, lanes: Lanes, route: str | None) -> None:
        self.table = table
        self._words = job.of_workers()
        self._learned: dict[int, bytes] = {}
        #: The workers that listen, by lane.
        self._workers: list[str] = []
        if not isinstance(lanes, Mapping):
            if "listen" in job.given:
                raise _spread.usage(
                    "lanes is missing: the side that listens says at which address each of its workers does,"
                    ' for instance lanes={"w0": "0.0.0.0:7001"}'
                )
        elif "listen" not in job.given:
            raise _spread.usage(
                "lanes with addresses of workers is for the side that listens. Give the other side's addresses"
            )
        else:
            self._workers, lanes = list(lanes), list(lanes.values())
            alive = self._alive()
            if missing := [worker for worker in self._workers if worker not in alive]:
                raise _spread.usage(
                    f"there is no such worker as {missing[0]!r}, which lanes has. The workers are {', '.join(map(repr, alive))}"
                )
        self._places = _spread.Places(job, lanes, route)

    def _alive(self) -> dict[str, str]:
        """Returns the addresses of the live workers, by address and by name."""
        workers = self.table.client.scheduler_info(n_workers=-1)["workers"]
        names = {str(worker["name"]): address for address, worker in workers.items()}
        return {**names, **{address: address for address in workers}}

    def cut(self, key: bytes) -> None:
        """Brings the rows of each shard together."""
        self.table.cut(key)

    def lanes(self) -> tuple[int, list[int] | None]:
        """Returns how many shards can run at the same time, and where."""
        alive = self._alive()
        if self._workers:
            places = [at for at, worker in enumerate(self._workers) if worker in alive]
            return len(places), places
        return self._places.at_once or len(set(alive.values())), self._places.numbers()

    def run(self, tickets: list[bytes]) -> Iterator[tuple[int | None, bytes, str] | None]:
        """Runs these lanes. Yields results as they arrive, errors, and from time to time ``None``."""
        client, table = self.table.client, self.table
        name = f"veilset-{uuid.uuid4()}"
        queue = distributed.Queue(name, client=client)
        going: dict[int, tuple[Any, str | None]] = {}
        try:
            for ticket in tickets:
                lane, shards = _native.ticket_lane(ticket)
                held = _Held({shard: (table.shards[shard], table.marks[shard]) for shard in shards})
                worker = self._workers[lane] if self._workers else None
                address = None if worker is None else self._alive().get(worker)
                work = (table.operation, self._words, ticket, self._places.of(lane), held, name)
                pinned = {} if address is None else {"workers": [address], "allow_other_workers": False}
                going[lane] = client.submit(_lane, *work, pure=False, retries=0, **pinned), address
            while going:
                # With a time-out, each poll would be an error in the scheduler's log.
                if not queue.qsize():
                    time.sleep(_TICK)
                    yield None
                    alive = self._alive()
                    for lane, (future, address) in list(going.items()):
                        gone = address is not None and address not in alive
                        if not (gone or future.done()) or queue.qsize():
                            continue
                        del going[lane]
                        if why := _why(future) if future.done() else "its worker is gone":
                            yield None, b"", f"lane {lane}: {why}"
                            future.cancel()
                    continue
                shard, learned = queue.get()
                yield shard, learned, ""
        finally:
            for future, _ in going.values():
                future.cancel()
            # A running task is not cancelled, but checks whether the run is over.
            with contextlib.suppress(Exception):
                distributed.Event(f"{name}-over", client=client).set()
            with contextlib.suppress(Exception):
                queue.close()

    def result(self, shard: int, learned: bytes) -> None:
        """Takes the result of a shard, when the job is complete."""
        self._learned[shard] = learned

    def frame(self) -> Any:
        """Returns the rows of the result, on the workers, in the order of the table."""
        table, submit = self.table, self.table.submit
        if not self._learned:
            return None
        of, words, pieces = table.columns, table.words, len(table.partitions)
        empty = table.schema.empty_table()
        as_text = _spread.text_keys(of.operation, words, self._learned.values(), empty)
        results = [
            submit(
                _spread.result, of.operation, words, learned, as_text,
                submit(_spread.checked, table.shards[shard], shard, table.marks[shard]),
            )
            for shard, learned in sorted(self._learned.items())
        ]
        if table.gathered([submit(_is_none, results[0])])[0]:
            return None
        cuts = [submit(_spread.by_piece, rows, pieces) for rows in results]
        rows = _Rows(of, table.hash, table.schema, table.heads, {of.looked.keys[place] for place in as_text})
        parts = [
            submit(rows, part, at, [submit(_item, cut, at) for cut in cuts])
            # The other side's rows have no partition, and come last.
            for at, part in enumerate([*table.partitions, None])
        ]
        some = table.gathered([submit(_head, part) for part in parts])
        # If a worker is lost, these are recomputed later, when errors are no longer checked here.
        right = [table.client.submit(_right, part, key=f"veilset-rows-{uuid.uuid4()}") for part in parts]
        there = [(part, head) for part, head in zip(right, some) if head is not None]
        # Omitting rows keeps the others within the bounds of their partition.
        divisions = table.divisions if of.operation == "intersect" and len(there) == pieces else None
        # Object columns stay as they are.
        with dask.config.set({"dataframe.convert-string": False}):
            return dask.dataframe.from_delayed(
                [part for part, _ in there], meta=there[0][1], divisions=divisions, verify_meta=False
            )


class _Hash:
    """Computes the rows of a partition that have a key, with hashes and places."""

    def __init__(self, columns: _Columns, words: _spread.Words, schema: pyarrow.Schema) -> None:
        self.columns, self.words, self.schema = columns, words, schema

    def __call__(self, table: pyarrow.Table, at: int) -> pyarrow.Table:
        beside = [label for label in self.columns.labels if label not in self.columns.looked.names()]
        with _spread.in_partition(at):
            return _spread.hashed(self.columns.operation, self.words, table.cast(self.schema), at, beside)


class _Rows:
    """Makes the result rows of one partition, as a pandas frame, or the other side's rows."""

    def __init__(
        self,
        columns: _Columns,
        hash: Callable[[pyarrow.Table, int], pyarrow.Table],
        schema: pyarrow.Schema,
        heads: Sequence[Any],
        as_text: set[str],
    ) -> None:
        self.columns, self.hash, self.head = columns, hash, heads[0]
        keys = columns.looked.keys
        self.of_keys = {field.name: field.type for field in schema if field.name in keys}
        #: The dtypes of a union, which are the same in all partitions, regardless of the other side's keys.
        self.dtypes: dict[str, Any] = {}
        if columns.operation == "union":
            for at, name in enumerate(columns.labels):
                there = [
                    _frames.dtype_in_union(head.iloc[:, at].dtype, name in keys, name in as_text) for head in heads
                ]
                self.dtypes[name] = _one_dtype(there)

    def __call__(self, part: Any, at: int, tables: list[pyarrow.Table | None]) -> Any:
        table, labels = _spread.in_order(tables), self.columns.labels
        if table is None:
            return None
        if part is not None:
            again = self.hash(_handed(self.columns, part, at), at)
            _spread.same_rows(again, table, f"partition {at}")
            result = part.iloc[table.column(_spread.PLACE).to_numpy() - at * _spread.PIECE]
            result = _frames.in_union(result, labels, self.dtypes) if self.dtypes else result
        elif _spread.PLACE not in table.column_names:
            # This is a union without rows of ours.
            return _frames.new_rows(
                self.head.iloc[:, [labels.index(name) for name in table.column_names]],
                table.column_names, self.dtypes, self.of_keys, table,
            )
        elif self.dtypes:
            result = _frames.new_rows(self.head, labels, self.dtypes, self.of_keys, table)
        else:
            return None
        ours = {*labels, _spread.HASH, _spread.PLACE}
        return _frames.with_added(result, table, [name for name in table.column_names if name not in ours])


class _Held:
    """Futures that a task gets as futures, without their results."""

    def __init__(self, futures: dict[int, tuple[Any, bytes]]) -> None:
        self.futures = futures


def _handed(columns: _Columns, part: Any, at: int) -> pyarrow.Table:
    """Returns the columns of a partition that are read."""
    with _spread.in_partition(at):
        if (labels := [str(label) for label in part.columns]) != columns.labels:
            raise _spread.input_error(
                f"{_frames.NAME}: its columns are {', '.join(labels)}, and those of the whole are {', '.join(columns.labels)}. Make"
                " all partitions alike"
            )
        names, arrays = _frames.handed(part, labels, columns.looked)
    # Each partition may have other categories.
    dense = [of.dictionary_decode() if pyarrow.types.is_dictionary(of.type) else of for of in arrays]
    return pyarrow.table(dense, names=names)


def _known(part: Any, handed: pyarrow.Table) -> tuple[int, Any, pyarrow.Schema]:
    """Returns the known facts about a partition: its number of rows, the partition without its rows, and the types of the
    columns handed over."""
    return len(part), part.iloc[:0], handed.schema


def _cut(hash: _Hash, handed: pyarrow.Table, at: int, number: int) -> list[pyarrow.Table]:
    """Splits a partition into buckets."""
    return _spread.buckets(hash(handed, at), number)


def _one_schema(schemas: Sequence[pyarrow.Schema]) -> pyarrow.Schema:
    """Returns the common types of the columns in all partitions."""
    fields = []
    for at, name in enumerate(schemas[0].names):
        types = {_wide(schema.field(at).type) for schema in schemas} - {pyarrow.null()}
        if types == {pyarrow.large_string(), pyarrow.large_binary()}:
            types = {pyarrow.large_binary()}
        if len(types) > 1:
            raise _spread.input_error(
                f'{_frames.NAME}, column "{name}": its partitions have different types ({", ".join(sorted(map(str, types)))}). Give'
                " the column one type, for instance with astype",
                file=_frames.NAME,
                column=name,
            )
        fields.append(pyarrow.field(name, types.pop() if types else pyarrow.null()))
    return pyarrow.schema(fields)


def _wide(of: pyarrow.DataType) -> pyarrow.DataType:
    """Returns one type for all texts, and one for all bytes."""
    if pyarrow.types.is_string(of) or pyarrow.types.is_string_view(of):
        return pyarrow.large_string()
    if pyarrow.types.is_binary(of) or pyarrow.types.is_binary_view(of):
        return pyarrow.large_binary()
    return of


def _one_dtype(dtypes: Sequence[Any]) -> Any:
    """Returns the dtype that holds the values of these unchanged. Categories differ between partitions."""
    import pandas

    if all(isinstance(dtype, pandas.CategoricalDtype) for dtype in dtypes):
        return "category" if len(set(dtypes)) > 1 else dtypes[0]
    return dtypes[0] if len(set(dtypes)) == 1 else pandas.api.types.pandas_dtype(object)


def _item(of: Sequence[Any], at: int) -> Any:
    return of[at]


def _is_none(value: Any) -> bool:
    return value is None


def _head(frame: Any) -> Any:
    return None if frame is None else frame.iloc[:0]


def _why(future: Any) -> str | None:
    """Returns why a lane that is done did not complete its shards, if so."""
    if future.status == "cancelled":
        return "it was cancelled"
    if future.status == "finished":
        why: str | None = future.result()
        return why
    return told(future.exception())


def _lane(
    operation: str,
    words: _spread.Words,
    ticket: bytes,
    place: Mapping[str, str | None],
    held: _Held,
    name: str,
) -> str | None:
    """Runs a lane on a worker. Returns its error."""
    try:
        _run_lane(operation, words, ticket, place, held, name)
    except Exception as e:
        return told(e)
    return None


def _run_lane(
    operation: str,
    words: _spread.Words,
    ticket: bytes,
    place: Mapping[str, str | None],
    held: _Held,
    name: str,
) -> None:
    lane, _ = _native.ticket_lane(ticket)
    # The rows are fetched during the run, by separate tasks.
    with distributed.worker_client() as client:
        queue = distributed.Queue(name, client=client)
        over = distributed.Event(f"{name}-over", client=client)
        # When a worker dies, its tasks are restarted elsewhere. The other side's worker has left, and must not come back.
        begun = distributed.Event(f"{name}-{lane}", client=client)
        if begun.is_set():
            raise make("output", "its worker died", {"exit_code": 7})
        begun.set()

        def piece(shard: int) -> pyarrow.Table:
            rows, mark = held.futures[shard]
            return _right(client.submit(_quietly, _spread.checked, rows, shard, mark, pure=False).result())

        hands = _spread.Hands(
            piece=piece,
            keep=lambda shard, learned: queue.put((shard, learned)),
            stopped=lambda: bool(over.is_set()),
        )
        _native.run_lane(operation, words, ticket, place, hands)
