"""Operations on Dask: the table lies in a cluster, and its workers compute.

    import veilset.dask

    r = veilset.dask.intersect(ddf, client=client, shards=64, key="email", role="receiver", peer="hospital-b",
                               listen="0.0.0.0:7000", lanes={"w0": "0.0.0.0:7001", "w1": "0.0.0.0:7002"})
    r.frame    # a Dask data frame

The options are those of :func:`veilset.intersect` and :func:`veilset.union`. The process that calls this has the identity,
and agrees with the other party; the policy and the log are here. ``job`` keeps what is learned until the job is complete, and
``resume`` goes on with one that broke off, whatever became of the workers.

``lanes`` says where the workers of both sides meet. The side that listens gives the name or the address of each of its workers,
and where it listens: lane 0 is the first of them. The side that connects gives the addresses of the lanes, or with ``route``
only their number: all lanes are then reached at the address of ``connect``, where a proxy looks at the name that a connection
asks for, ``sNNN.ROUTE.veilset`` for lane NNN.

A worker that dies loses the shards that it had not completed, which run again.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dask
import dask.dataframe
import distributed
import pyarrow

from . import _native, _spread
from ._run import Result

__all__ = ["intersect", "union"]

#: How long to wait for results before looking at the workers, in seconds.
_TICK = 0.2

Lanes = Mapping[str, str] | Sequence[str] | int | None


def intersect(
    data: Any,
    *,
    client: distributed.Client | None = None,
    lanes: Lanes = None,
    route: str | None = None,
    **options: Any,
) -> Result:
    """The rows of the receiver whose keys the sender has too. Only the receiver learns which, unless ``both``."""
    return _run_on("intersect", data, client, lanes, route, options)


def union(
    data: Any,
    *,
    client: distributed.Client | None = None,
    lanes: Lanes = None,
    route: str | None = None,
    **options: Any,
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
    if not hasattr(data, "to_delayed"):
        raise _spread.usage(
            f"a {type(data).__name__} is no Dask data frame. Make one with dask.dataframe, or use veilset.{operation}"
        )
    job = _spread.Agreed(operation, options)
    client = client or distributed.default_client()
    table = _Table(operation, job.words, client)
    crew = _Crew(job, table, lanes, route)
    result = job.run(table.gather(data, job.keys), crew)
    result.frame = crew.frame()
    return result


class _Table:
    """The table, in pieces that are on the workers."""

    def __init__(self, operation: str, words: dict[str, Any], client: distributed.Client) -> None:
        self.operation, self.words, self.client = operation, words, client
        self.number = int(words["shards"])
        self.pieces = 0
        self.meta: Any = None
        self._buckets: list[Any] = []
        self.shards: list[Any] = []
        self.marks: list[bytes] = []
        self._whole: dict[str, Any] = {}

    def gather(self, data: Any, keys: bytes) -> dict[str, Any]:
        """Brings equal keys together; returns what is known of the whole table."""
        submit, words = self.client.submit, self.words
        partitions = self.client.compute(data.to_delayed())
        self.pieces, self.meta = len(partitions), data._meta
        rows = [submit(len, part) for part in partitions]
        hashed = [
            submit(_hashed, self.operation, words, part, at, pure=False) for at, part in enumerate(partitions)
        ]
        number = min(max(self.pieces, 1), 256)
        cuts = [submit(_spread.buckets, table, number, pure=False) for table in hashed]
        self._buckets = [
            submit(_spread.ordered, [submit(_item, cut, at, pure=False) for cut in cuts], pure=False)
            for at in range(number)
        ]
        sums = [submit(_spread.summed, self.operation, words, keys, table, pure=False) for table in self._buckets]
        counted, parts = self.client.gather([rows, sums])
        self._whole = _spread.total(parts, sum(counted), keys)
        return self._whole

    def cut(self, key: bytes) -> None:
        """Brings the rows of each shard together."""
        submit = self.client.submit
        marks = [submit(_spread.marks, key, self.number, table, pure=False) for table in self._buckets]
        cuts = [submit(_spread.shards, key, self.number, table, pure=False) for table in self._buckets]
        self._buckets = []
        self.shards = [
            submit(pyarrow.concat_tables, [submit(_item, cut, at, pure=False) for cut in cuts], pure=False)
            for at in range(self.number)
        ]
        self.marks = _spread.all_marks(self.client.gather(marks), self.number, self._whole)


class _Crew:
    """The workers, and what they learn."""

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
        """The addresses of the workers, by their addresses and by their names."""
        workers = self.table.client.scheduler_info(n_workers=-1)["workers"]
        names = {str(worker["name"]): address for address, worker in workers.items()}
        return {**names, **{address: address for address in workers}}

    def cut(self, key: bytes) -> None:
        """Brings the rows of each shard together."""
        self.table.cut(key)

    def lanes(self) -> tuple[int, list[int] | None]:
        """How many shards can run at the same time, and where."""
        alive = self._alive()
        if self._workers:
            places = [at for at, worker in enumerate(self._workers) if worker in alive]
            return len(places), places
        return self._places.at_once or len(set(alive.values())), self._places.numbers()

    def run(self, tickets: list[bytes]) -> Iterator[tuple[int | None, bytes, str] | None]:
        """Runs these lanes. Yields results as they come, what went wrong, and nothing from time to time."""
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
                # With a time-out, each look would be an error in the scheduler's log.
                if not queue.qsize():
                    time.sleep(_TICK)
                    yield None
                    alive = self._alive()
                    for lane, (future, address) in list(going.items()):
                        gone = address is not None and address not in alive
                        if not (gone or future.done()) or queue.qsize():
                            continue
                        del going[lane]
                        if future.status != "finished":
                            yield None, b"", f"lane {lane}: {_why(future) if future.done() else 'its worker is gone'}"
                            future.cancel()
                    continue
                shard, learned = queue.get()
                yield shard, learned, ""
        finally:
            for future, _ in going.values():
                future.cancel()
            # A task that runs is not cancelled, but looks whether it is over.
            with contextlib.suppress(Exception):
                distributed.Event(f"{name}-over", client=client).set()
            with contextlib.suppress(Exception):
                queue.close()

    def result(self, shard: int, learned: bytes) -> None:
        """Takes the result of a shard, when the job is complete."""
        self._learned[shard] = learned

    def frame(self) -> Any:
        """The rows of the result, on the workers, in the order of the table."""
        table, submit = self.table, self.table.client.submit
        if not self._learned:
            return None
        results = [
            submit(
                _spread.result,
                table.operation,
                table.words,
                learned,
                submit(_spread.checked, table.shards[shard], shard, table.marks[shard], pure=False),
                pure=False,
            )
            for shard, learned in sorted(self._learned.items())
        ]
        if table.client.submit(_is_none, results[0], pure=False).result():
            return None
        cuts = [submit(_spread.by_piece, rows, table.pieces, pure=False) for rows in results]
        parts = [
            submit(_frame, [submit(_item, cut, at, pure=False) for cut in cuts], pure=False)
            for at in range(table.pieces + 1)
        ]
        some = table.client.gather([submit(_head, part, pure=False) for part in parts])
        there = [(part, head) for part, head in zip(parts, some) if head is not None]
        return dask.dataframe.from_delayed([part for part, _ in there], meta=there[0][1], verify_meta=False)


class _Held:
    """Futures that a task gets as they are, without what they stand for."""

    def __init__(self, futures: dict[int, tuple[Any, bytes]]) -> None:
        self.futures = futures


def _hashed(operation: str, words: _spread.Words, part: Any, at: int) -> pyarrow.Table:
    table = part if isinstance(part, pyarrow.Table) else pyarrow.Table.from_pandas(part, preserve_index=False)
    return _spread.hashed(operation, words, table, at)


def _item(of: Sequence[Any], at: int) -> Any:
    return of[at]


def _is_none(value: Any) -> bool:
    return value is None


def _frame(tables: list[pyarrow.Table | None]) -> Any:
    table = _spread.in_order(tables)
    return None if table is None else table.to_pandas()


def _head(frame: Any) -> Any:
    return None if frame is None else frame.iloc[:0]


def _why(future: Any) -> str:
    if future.status == "cancelled":
        return "it was cancelled"
    error = future.exception()
    return f"{type(error).__name__}: {error}"


def _lane(
    operation: str,
    words: _spread.Words,
    ticket: bytes,
    place: Mapping[str, str | None],
    held: _Held,
    name: str,
) -> None:
    """Runs a lane, on a worker."""
    lane, _ = _native.ticket_lane(ticket)
    # The rows are fetched while it runs, by tasks of their own.
    with distributed.worker_client() as client:
        queue = distributed.Queue(name, client=client)
        over = distributed.Event(f"{name}-over", client=client)
        # When a worker dies, its tasks are begun again elsewhere. The other side's worker has left, and must not come back.
        begun = distributed.Event(f"{name}-{lane}", client=client)
        if begun.is_set():
            raise RuntimeError("its worker died")
        begun.set()

        def piece(shard: int) -> pyarrow.Table:
            rows, mark = held.futures[shard]
            return client.submit(_spread.checked, rows, shard, mark, pure=False).result()

        hands = _spread.Hands(
            piece=piece,
            keep=lambda shard, learned: queue.put((shard, learned)),
            stopped=lambda: bool(over.is_set()),
        )
        _native.run_lane(operation, words, ticket, place, hands)
