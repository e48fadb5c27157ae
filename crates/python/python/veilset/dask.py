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
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dask
import dask.dataframe
import distributed
import pyarrow

from . import _native, _run, _spread
from ._errors import make as _make_error
from ._frames import Source
from ._run import Result

__all__ = ["intersect", "union"]

#: How long to wait for results before looking at the workers.
_TICK = "200ms"
#: How long the workers of a lane wait for each other, in seconds, unless ``connect_timeout`` is shorter.
_MEET = 60

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


def _usage(text: str) -> Exception:
    return _make_error("usage", text, {"exit_code": 2})


def _run_on(
    operation: str,
    data: Any,
    client: distributed.Client | None,
    lanes: Lanes,
    route: str | None,
    options: Mapping[str, Any],
) -> Result:
    if not hasattr(data, "to_delayed"):
        raise _usage(f"a {type(data).__name__} is no Dask data frame. Make one with dask.dataframe, or use veilset.{operation}")
    given = _run.given_of(options)
    if not given.get("shards"):
        raise _usage("workers run the shards of a job. Give their number with shards")
    identity = given.get("identity")
    keys = _native.digest_keys(getattr(identity, "path", identity))
    client = client or distributed.default_client()
    table = _Table(operation, _run.worded({k: v for k, v in given.items() if k != "progress"}), client)
    crew = _Crew(table, lanes, route, given)
    whole = table.gather(data, keys)
    started = _run.Started(
        lambda words, _: _native.Run.spread(operation, words, whole, crew), Source(None, None, lambda frame: frame), given
    )
    try:
        started.wait_for_the_end()
    finally:
        crew.close()
    result = started.result()
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
        self._shards: list[Any] = []

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
        return _spread.total(parts, sum(counted), keys)

    def shard(self, ticket: bytes, shard: int) -> Any:
        """The rows of a shard."""
        submit = self.client.submit
        if not self._shards:
            cuts = [submit(_spread.shards, ticket, self.number, table, pure=False) for table in self._buckets]
            self._buckets = []
            self._shards = [
                submit(pyarrow.concat_tables, [submit(_item, cut, at, pure=False) for cut in cuts], pure=False)
                for at in range(self.number)
            ]
        return self._shards[shard]


class _Crew:
    """The workers, and what they learn."""

    def __init__(self, table: _Table, lanes: Lanes, route: str | None, given: Mapping[str, Any]) -> None:
        self.table = table
        self._listens = "listen" in given
        self._connect = given.get("connect")
        self._route = route
        self._workers: list[str] = []
        self._places: list[str] = []
        self._at_once = 0
        self._event = f"veilset-{uuid.uuid4()}"
        if self._listens:
            if not isinstance(lanes, Mapping) or not lanes:
                raise _usage(
                    "lanes is missing: the side that listens says at which address each of its workers does,"
                    ' for instance lanes={"w0": "0.0.0.0:7001"}'
                )
            self._workers, self._places = list(lanes), list(lanes.values())
        elif isinstance(lanes, (list, tuple)):
            self._places = list(lanes)
        elif isinstance(lanes, Mapping):
            raise _usage("lanes with addresses of workers is for the side that listens. Give the other side's addresses")
        elif route is None:
            raise _usage("lanes is missing: the addresses of the other side's workers. Or give route, if a proxy leads to them")
        else:
            self._at_once = int(lanes) if isinstance(lanes, int) else 0
        words = {**table.words, "connect_timeout": min(int(table.words.get("connect_timeout", _MEET)), _MEET)}
        self._words = words
        self._learned: dict[int, bytes] = {}

    def _alive(self) -> dict[str, str]:
        """The addresses of the workers, by their addresses and by their names."""
        workers = self.table.client.scheduler_info(n_workers=-1)["workers"]
        names = {str(worker["name"]): address for address, worker in workers.items()}
        return {**names, **{address: address for address in workers}}

    def lanes(self) -> tuple[int, list[int] | None]:
        """How many shards can run at the same time, and where."""
        alive = self._alive()
        if self._listens:
            places = [at for at, worker in enumerate(self._workers) if worker in alive]
            return len(places), places
        at_once = self._at_once or len(set(alive.values()))
        return at_once, list(range(len(self._places))) if self._places else None

    def _place(self, lane: int) -> dict[str, str | None]:
        place: dict[str, str | None] = {"listen": None, "connect": None, "label": None, "proxy": None}
        if self._listens:
            place["listen"] = self._places[lane]
        else:
            place["connect"] = self._places[lane] if self._places else self._connect
            place["proxy"] = self.table.words.get("proxy")
        if self._route is not None:
            place["label"] = f"s{lane:03}.{self._route}.veilset"
        return place

    def run(self, tickets: list[bytes]) -> Iterator[tuple[int | None, bytes, str] | None]:
        """Runs these lanes. Yields results as they come, what went wrong, and nothing from time to time."""
        client, table = self.table.client, self.table
        name = f"veilset-{uuid.uuid4()}"
        queue = distributed.Queue(name, client=client)
        going: dict[int, tuple[Any, str | None]] = {}
        begun: set[int] = set()
        try:
            for ticket in tickets:
                lane, shards = _native.ticket_lane(ticket)
                held = _Held({shard: table.shard(ticket, shard) for shard in shards})
                worker = self._workers[lane] if self._listens else None
                address = None if worker is None else self._alive().get(worker)
                work = (table.operation, self._words, ticket, self._place(lane), held, (name, self._event))
                pinned = {} if address is None else {"workers": [address], "allow_other_workers": False}
                going[lane] = client.submit(_lane, *work, pure=False, retries=0, **pinned), worker
            while going:
                try:
                    lane, shard, learned = queue.get(timeout=_TICK)
                except TimeoutError:
                    yield None
                    alive = self._alive()
                    for lane, (future, worker) in list(going.items()):
                        gone = worker is not None and worker not in alive
                        if not (gone or future.done()) or queue.qsize():
                            continue
                        del going[lane]
                        if future.status != "finished":
                            yield None, b"", f"lane {lane}: {_why(future) if future.done() else 'its worker is gone'}"
                            future.cancel()
                    continue
                if shard is not None:
                    yield shard, learned, ""
                elif lane in begun and lane in going:
                    # Its worker died, and it was begun again elsewhere: the other side's worker has left.
                    going.pop(lane)[0].cancel()
                    yield None, b"", f"lane {lane}: its worker died"
                begun.add(lane)
        finally:
            for future, _ in going.values():
                future.cancel()
            with contextlib.suppress(Exception):
                queue.close()

    def result(self, shard: int, learned: bytes) -> None:
        """Takes the result of a shard, when the job is complete."""
        self._learned[shard] = learned

    def close(self) -> None:
        """Tells workers that still wait for the other side that it is over."""
        with contextlib.suppress(Exception):
            distributed.Event(self._event, client=self.table.client).set()

    def frame(self) -> Any:
        """The rows of the result, on the workers, in the order of the table."""
        table, submit = self.table, self.table.client.submit
        if not self._learned:
            return None
        results = [
            submit(_spread.result, table.operation, table.words, learned, table._shards[shard], pure=False)
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

    def __init__(self, futures: dict[int, Any]) -> None:
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
    names: tuple[str, str],
) -> None:
    """Runs a lane, on a worker."""
    lane, _ = _native.ticket_lane(ticket)
    # The rows are fetched while it runs, by tasks of their own.
    with distributed.worker_client() as client:
        queue = distributed.Queue(names[0], client=client)
        over = distributed.Event(names[1], client=client)
        queue.put((lane, None, b""))
        hands = _spread.Hands(
            piece=lambda shard: client.gather(held.futures[shard]),
            keep=lambda shard, learned: queue.put((lane, shard, learned)),
            stopped=lambda: bool(over.is_set()),
        )
        _native.run_lane(operation, words, ticket, place, hands)
