"""Operations on Spark: the table is in a cluster, and its executors compute.

    import veilset.spark

    r = veilset.spark.intersect(df, shards=64, key="email", role="receiver", peer="hospital-b", listen="0.0.0.0:7000",
                                lanes=["0.0.0.0:7001", "0.0.0.0:7002"])
    r.frame    # a Spark data frame

The options are those of :func:`veilset.intersect` and :func:`veilset.union`. The driver has the identity, and agrees with the
other party; the policy and the log are here. ``job`` keeps the results of shards until the job is complete, and ``resume``
continues one that broke off.

``lanes`` says where the tasks of both sides meet. The side that listens gives an address for each lane: whichever executor runs
the lane listens there. The side that connects gives the addresses of the lanes, or with ``route`` only their number. All lanes
are then reached at the address of ``connect``, where a proxy routes by the name that a connection asks for,
``sNNN.ROUTE.veilset`` for lane NNN.

The lanes of a round run in barrier mode: all at once, one task each, so the cluster needs that many free slots. The shards that
a lane completed before it failed are kept. An executor that dies ends the whole round, whose shards run again.

``df`` is read more than once if the cluster loses cached data, and must give the same rows each time. It belongs to a session
in this process: Spark Connect has no barrier mode, and its frames are refused.
"""

from __future__ import annotations

import inspect
import json
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy
import pyarrow
from pyspark import BarrierTaskContext, StorageLevel, TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import BinaryType, DataType, IntegerType, LongType, StructField, StructType

from . import _native, _options, _spread
from ._errors import Error, make, told
from ._frames import NAME, SEE
from ._help import with_options
from ._run import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["intersect", "union"]

Result_ = TypeVar("Result_")

#: The column with the shard of a row.
_SHARD = "__veilset_shard"
#: The column with a number by which Spark sends a row to its task.
_SLOT = "__veilset_slot"
#: The number of rows in a batch that a task returns.
_ROWS = 10_000
#: The interval, in seconds, at which the driver checks whether the run was stopped.
_TICK = 0.2


@with_options("intersect", typed=_options.OnWorkers)
def intersect(
    data: DataFrame,
    *,
    lanes: Sequence[str] | int | None = None,
    route: str | None = None,
    **options: Unpack[_options.OnWorkers],
) -> Result:
    """The rows of the receiver whose keys the sender has too. Only the receiver learns which, unless ``both``."""
    return _run_on("intersect", data, lanes, route, options)


@with_options("union", typed=_options.OnWorkers)
def union(
    data: DataFrame,
    *,
    lanes: Sequence[str] | int | None = None,
    route: str | None = None,
    **options: Unpack[_options.OnWorkers],
) -> Result:
    """The receiver's rows and the sender's new keys, without showing the receiver which ones both have."""
    return _run_on("union", data, lanes, route, options)


def _run_on(
    operation: str, data: Any, lanes: Sequence[str] | int | None, route: str | None, options: Mapping[str, Any]
) -> Result:
    if not isinstance(data, DataFrame):
        raise _spread.usage(f"a {type(data).__name__} is no Spark data frame. Use veilset.{operation} for it")
    if ".connect." in type(data).__module__:
        raise _spread.usage(
            "the frame is one of Spark Connect, over which the lanes of a round cannot run at the same time (barrier mode). Use a"
            " session in the driver of the cluster, as spark-submit starts one, or save the rows and read them with another engine"
        )
    _spread.check_names(data.columns)
    job = _spread.Agreed(operation, options, data.columns)
    table = _Table(job, data)
    crew = _Crew(job, table, _spread.Places(job, lanes, route))
    return job.run(table.gather(), crew)


class _Table:
    """The table, with rows of equal keys together."""

    def __init__(self, job: _spread.Agreed, data: DataFrame) -> None:
        self.job, self.data = job, data
        self.spark: SparkSession = data.sparkSession
        self.number = int(job.words["shards"])
        self.ordered: DataFrame = data
        self._key = b""
        self.marks: list[bytes] = []
        self._whole: dict[str, Any] = {}

    def gather(self) -> dict[str, Any]:
        """Brings equal keys together. Returns the known facts about the whole table."""
        operation, words, keys = self.job.operation, self.job.words, self.job.keys
        given = _arrow(self.data)

        def hashed(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            context = TaskContext.get()
            assert context is not None
            # The schema of the batches tells more exactly which columns may be without a value.
            all = list(batches)
            table = pyarrow.Table.from_batches(all) if all else given.empty_table()
            with _spread.in_partition(context.partitionId()):
                rows = _spread.hashed(operation, words, table, context.partitionId())
            yield from _batches(rows)

        def summed(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            if all := list(batches):
                row = _spread.summed(operation, words, keys, pyarrow.Table.from_batches(all))
                names = ("items", "again", "rows", "sums", "mark", "profile")
                yield pyarrow.RecordBatch.from_pylist([dict(zip(names, row))])

        schema = _with(self.data.schema, (_spread.HASH, BinaryType()), (_spread.PLACE, LongType()))
        hashes = self.data.mapInArrow(_telling(hashed), schema)
        # Rows are partitioned by hash and sorted, so that equal keys are neighbours.
        number = max(self.spark.sparkContext.defaultParallelism, _partitions(self.data))
        ordered = hashes.repartition(number, _spread.HASH).sortWithinPartitions(_spread.HASH, _spread.PLACE)
        self.ordered = ordered.persist(StorageLevel.MEMORY_AND_DISK)
        form = "items long, again long, rows long, sums binary, mark binary, profile binary"
        sums = _asked(self.ordered.mapInArrow(_telling(summed), form).collect)
        parts = [(row[0], row[1], row[2], bytes(row[3]), bytes(row[4]), bytes(row[5])) for row in sums]
        self._whole = _spread.total(parts, _asked(self.data.count), keys)
        return self._whole

    def cut(self, key: bytes) -> None:
        """Takes the key of the shards."""
        number = self.number

        def marked(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            for batch in batches:
                marks = _spread.marks(key, number, pyarrow.Table.from_batches([batch]))
                yield pyarrow.RecordBatch.from_pylist([{"marks": marks}])

        def marks() -> list[bytes]:
            parts = self.ordered.mapInArrow(_telling(marked), "marks binary").toLocalIterator()
            return _spread.all_marks((bytes(row[0]) for row in parts), number, self._whole)

        self._key, self.marks = key, _asked(marks)

    def tasks(self, tasks: Sequence[Sequence[int]]) -> DataFrame:
        """Returns the rows of these shards, with one partition per task: each has the rows of its shards, one shard after
        another."""
        key, number = self._key, self.number
        slot_of = numpy.full(number, -1, "i4")
        for shards, slot in zip(tasks, self._slots(len(tasks))):
            slot_of[list(shards)] = slot

        def cut(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            for batch in batches:
                table = pyarrow.Table.from_batches([batch])
                of = _spread.shards_of(key, number, table)
                table = table.append_column(_SHARD, pyarrow.array(of.astype("i4")))
                table = table.append_column(_SLOT, pyarrow.array(slot_of[of]))
                yield from _batches(table.filter(pyarrow.array(slot_of[of] >= 0)))

        schema = _with(self.ordered.schema, (_SHARD, IntegerType()), (_SLOT, IntegerType()))
        rows = self.ordered.mapInArrow(_telling(cut), schema).repartition(len(tasks), _SLOT)
        return rows.sortWithinPartitions(_SHARD, _spread.HASH, _spread.PLACE).drop(_SLOT)

    def _slots(self, tasks: int) -> list[int]:
        """Returns a number for each task: rows with that number are sent to it."""
        of = self.spark.range(64 * tasks).selectExpr("int(id) as id", f"pmod(hash(int(id)), {tasks}) as task").collect()
        slots = {int(row["task"]): int(row["id"]) for row in of}
        return [slots[task] for task in range(tasks)]


class _Crew:
    """The tasks that run lanes, and their results."""

    def __init__(self, job: _spread.Agreed, table: _Table, places: _spread.Places) -> None:
        self.job, self.table, self.places = job, table, places
        self._learned: dict[int, bytes] = {}

    def cut(self, key: bytes) -> None:
        """Takes the key of the shards."""
        self.table.cut(key)

    def lanes(self) -> tuple[int, list[int] | None]:
        """Returns how many shards can run at the same time, and where."""
        slots = self.table.spark.sparkContext.defaultParallelism
        return min(slots, self.places.at_once or slots), self.places.numbers()

    def run(self, tickets: list[bytes]) -> Iterator[tuple[int | None, bytes, str] | None]:
        """Runs these lanes. Yields ``None`` from time to time, and at the end all results and errors."""
        spark, operation, words = self.table.spark, self.job.operation, self.job.of_workers()
        lanes = [_native.ticket_lane(ticket) for ticket in tickets]
        places = [self.places.of(lane) for lane, _ in lanes]
        form, marks = _arrow(self.table.ordered), self.table.marks

        def run(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            context = BarrierTaskContext.get()
            at, learned = context.partitionId(), _Learned()
            # Spark does not restart the last stage in barrier mode, so a ticket is carried out once.
            context.barrier()
            hands = _spread.Hands(_Shards(batches, form, marks).of, learned.keep, lambda: False)
            try:
                _native.run_lane(operation, words, tickets[at], places[at], hands)
            except Exception as e:
                yield learned.batch(told(e))
            else:
                yield learned.batch(None)

        rows = self.table.tasks([shards for _, shards in lanes])
        done: list[Any] = []
        tag = f"veilset-{uuid.uuid4()}"

        def collect() -> None:
            spark.addTag(tag)
            try:
                done.extend(rows.mapInArrow(run, "shard int, learned binary, wrong string", barrier=True).collect())
            except Exception as e:
                done.append((None, b"", str(_of_tasks(e))))

        going = threading.Thread(target=collect, daemon=True)
        going.start()
        try:
            while going.is_alive():
                going.join(_TICK)
                yield None
        finally:
            if going.is_alive():
                spark.interruptTag(tag)
        for shard, learned, wrong in done:
            yield shard, bytes(learned or b""), wrong or ""

    def result(self, shard: int, learned: bytes) -> None:
        """Takes the result of a shard, when the job is complete."""
        self._learned[shard] = learned

    def frame(self) -> DataFrame | None:
        """Returns the rows of the result, in the order of the table."""
        if not self._learned:
            return None
        table, operation, words = self.table, self.job.operation, self.job.words
        number, tasks = table.number, min(table.number, _partitions(table.ordered))
        learned = self._learned.values()
        as_text = _spread.text_keys(operation, words, learned, _arrow(table.ordered).empty_table())
        all_learned = table.spark.sparkContext.broadcast(self._learned)
        form, marks = _arrow(table.ordered), table.marks

        def results(batches: Iterable[pyarrow.RecordBatch], shards: Sequence[int]) -> Iterator[pyarrow.Table]:
            rows = _Shards(batches, form, marks)
            for shard in shards:
                result = _spread.result(operation, words, all_learned.value[shard], as_text, rows.of(shard))
                if result is not None:
                    yield result.drop_columns([name for name in result.column_names if name == _spread.HASH])

        def some(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            for result in results(batches, [0]):
                yield pyarrow.RecordBatch.from_pylist([{"form": result.schema.serialize().to_pybytes()}])

        def every(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            context = TaskContext.get()
            assert context is not None
            for result in results(batches, range(context.partitionId(), number, tasks)):
                yield from _batches(result)

        first = _asked(table.tasks([[0]]).mapInArrow(_telling(some), "form binary").first)
        if first is None:
            return None
        form_of_result = from_arrow_schema(
            pyarrow.ipc.read_schema(pyarrow.py_buffer(first["form"])), prefer_timestamp_ntz=True
        )
        rows = table.tasks([range(at, number, tasks) for at in range(tasks)]).mapInArrow(_telling(every), form_of_result)
        if _spread.PLACE in rows.columns:
            # The other side's rows have no place, and come last.
            rows = rows.orderBy(sql.col(_spread.PLACE).asc_nulls_last()).drop(_spread.PLACE)
        rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        # Otherwise Spark would compute the rows only when they are used.
        _asked(rows.count)
        return rows


#: A task's function on the batches of its partition.
_Task = Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]


class _FailedError(Exception):
    """An error in a task, as JSON: Spark passes only its text to the driver, and logs that. It contains no cell."""


def _telling(do: _Task) -> _Task:
    """Wraps a task's function so that it raises its errors as :class:`_FailedError`."""

    def telling(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        try:
            yield from do(batches)
            return
        except Error as e:
            wrong = {"kind": e.kind, "message": str(e), "fields": vars(e)}
        except Exception as e:
            message = f"an executor could not do its part: {told(e)}"
            wrong = {"kind": "output", "message": message, "fields": {"exit_code": 7}}
        # Raised outside the handler, so that the handled exception is not attached.
        raise _FailedError(json.dumps(wrong))

    return telling


def _asked(action: Callable[[], Result_]) -> Result_:
    """Returns the result of a Spark action, and converts its exceptions into errors of ours."""
    try:
        return action()
    except Exception as e:
        error = _of_tasks(e)
    raise error


def _of_tasks(raised: Exception) -> Error:
    """Returns the error that a task reported, or the kind of another exception, whose message may name a cell."""
    if isinstance(raised, Error):
        return raised
    if told_by := re.findall(r"^(?:veilset\.spark\.)?_FailedError: (\{.*\})\s*$", str(raised), re.MULTILINE):
        wrong = json.loads(told_by[-1])
        return make(wrong["kind"], wrong["message"], wrong["fields"])
    if missing := re.search(r"^ModuleNotFoundError: No module named '([\w.]+)'$", str(raised), re.MULTILINE):
        what = f"the executors have no module {missing[1]}. Install it where they run, with the Python that they use (PYSPARK_PYTHON)"
        return make("output", what, {"exit_code": 7})
    condition = raised.getCondition() if isinstance(raised, PySparkException) else None
    kind = f"{type(raised).__name__}{f', {condition}' if condition else ''}"
    return _spread.input_error(f"{NAME}: the rows could not be obtained ({kind}). {SEE}", file=NAME)


class _Learned:
    """The results of a lane."""

    def __init__(self) -> None:
        self._shards: list[int] = []
        self._learned: list[bytes] = []

    def keep(self, shard: int, learned: bytes) -> None:
        """Keeps the result of a shard."""
        self._shards.append(shard)
        self._learned.append(learned)

    def batch(self, wrong: str | None) -> pyarrow.RecordBatch:
        """Returns the results, followed by the error, if any."""
        some = [] if wrong is None else [wrong]
        return pyarrow.RecordBatch.from_arrays(
            [
                pyarrow.array([*self._shards, *(None for _ in some)], pyarrow.int32()),
                pyarrow.array([*self._learned, *(None for _ in some)], pyarrow.binary()),
                pyarrow.array([*(None for _ in self._shards), *some], pyarrow.string()),
            ],
            names=["shard", "learned", "wrong"],
        )


class _Shards:
    """The rows of a partition, shard by shard, in the order in which they come."""

    def __init__(self, batches: Iterable[pyarrow.RecordBatch], form: pyarrow.Schema, marks: Sequence[bytes]) -> None:
        self._batches, self._form, self._marks = iter(batches), form, marks
        self._rest: pyarrow.Table | None = None

    def of(self, shard: int) -> pyarrow.Table:
        """Returns the rows of this shard. The shards before it are skipped."""
        rows = []
        while True:
            if self._rest is None or not len(self._rest):
                batch = next(self._batches, None)
                if batch is None:
                    break
                self._rest = pyarrow.Table.from_batches([batch])
            of = self._rest.column(_SHARD).to_numpy()
            begins, ends = numpy.searchsorted(of, [shard, shard + 1])
            rows.append(self._rest.slice(begins, ends - begins).drop_columns([_SHARD]))
            self._rest = self._rest.slice(ends)
            if len(self._rest):
                break
        return _spread.checked(pyarrow.concat_tables(rows) if rows else self._form.empty_table(), shard, self._marks[shard])


def _partitions(data: DataFrame) -> int:
    """Returns the number of partitions, for which Spark may have to compute something."""
    number: int = _asked(lambda: data.rdd.getNumPartitions())
    return number


def _arrow(data: DataFrame) -> pyarrow.Schema:
    """Returns the types in which executors get the columns."""
    zone = data.sparkSession.conf.get("spark.sql.session.timeZone")
    # Spark 4.2 and newer need the time zone as an argument.
    told: dict[str, Any] = {"timezone": zone} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(data.schema, **told)


def _with(schema: StructType, *columns: tuple[str, DataType]) -> StructType:
    """Returns a schema with more columns."""
    return StructType([*schema.fields, *(StructField(name, kind) for name, kind in columns)])


def _batches(table: pyarrow.Table) -> Iterator[pyarrow.RecordBatch]:
    yield from table.to_batches(max_chunksize=_ROWS)
