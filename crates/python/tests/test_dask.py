"""Jobs on Dask: two companies with a cluster of two workers each."""

from __future__ import annotations

import datetime
import decimal
import logging
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import veilset
from conftest import Pair, free_address
from test_cells import MARK, said_of

dask = pytest.importorskip("dask")
import dask.dataframe  # noqa: E402
import pandas  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402
from veilset import dask as on_dask  # noqa: E402


@pytest.fixture(scope="module")
def clients() -> Iterator[list[Client]]:
    with dask.config.set({"distributed.worker.daemon": False}):
        clusters = [
            LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None, protocol="tcp") for _ in range(2)
        ]
        clients = [Client(cluster, set_as_default=False) for cluster in clusters]
        yield clients
        for of in [*clients, *clusters]:
            of.close()


def keys(numbers: range) -> pandas.DataFrame:
    return pandas.DataFrame({"k": [f"k{i}" for i in numbers], "n": [i * i for i in numbers]})


def run(
    pair: Pair,
    clients: list[Client],
    operation: str,
    tables: list[Any],
    both: dict[str, Any] | None = None,
    sides: tuple[dict[str, Any], dict[str, Any]] = ({}, {}),
) -> list[Any]:
    """Returns each side's result or exception. The receiver listens. The options of either side may say where both meet."""
    address, places = free_address(), [free_address() for _ in range(2)]
    results: list[Any] = [None, None]
    lanes: list[Any] = [dict(zip(["0", "1"], places)), places]

    def one(party: int) -> None:
        options = {**pair.options(party, address), "shards": 5, "lanes": lanes[party], **(both or {}), **sides[party]}
        options["key"] = options.get("key", "k")
        try:
            result = getattr(on_dask, operation)(tables[party], client=clients[party], **options)
            if result.frame is not None:
                assert isinstance(result.frame, dask.dataframe.DataFrame)
                result.frame = clients[party].compute(result.frame).result()
            results[party] = result
        except Exception as e:
            results[party] = e

    threads = [threading.Thread(target=one, args=(party,)) for party in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def done(results: list[Any]) -> list[Any]:
    failed = [result for result in results if isinstance(result, Exception)]
    # An error of the network or the peer may be a consequence of the other side's.
    for result in sorted(failed, key=lambda e: isinstance(e, (veilset.NetworkError, veilset.PeerError))):
        raise result
    return results


def parts(*tables: pandas.DataFrame) -> list[Any]:
    return [dask.dataframe.from_pandas(table, npartitions=3 + at) for at, table in enumerate(tables)]


def rows(frame: pandas.DataFrame) -> list[tuple[Any, ...]]:
    """Returns the rows in the order of the frame, with None for missing values."""
    return [tuple(None if pandas.isna(cell) else cell for cell in row) for row in frame.itertuples(index=False)]


def same_as_one_run(
    pair: Pair,
    clients: list[Client],
    operation: str,
    tables: list[pandas.DataFrame],
    sides: tuple[dict[str, Any], dict[str, Any]] = ({}, {}),
    **both: Any,
) -> list[Any]:
    """Checks that workers give the same rows as a single run, on both sides and in their order."""
    got = done(run(pair, clients, operation, parts(*tables), both, sides))
    one = pair.both(operation, *[(table, {"key": "k", **side}) for table, side in zip(tables, sides)], both)
    for ours, theirs in zip(got, one):
        assert (ours.frame is None) == (theirs.frame is None)
        assert ours.matches == theirs.matches
        if ours.frame is not None:
            assert list(ours.frame.columns) == list(theirs.frame.columns)
            # New keys come last, in any order.
            mine = len(tables[0]) if operation == "union" else None
            a, b = rows(ours.frame), rows(theirs.frame)
            assert a[:mine] == b[:mine]
            assert sorted(map(str, a)) == sorted(map(str, b))
    return got


def test_intersect_gives_what_one_run_gives(pair: Pair, clients: list[Client]) -> None:
    tables = [keys(range(100)), keys(range(60, 200))]
    r, s = same_as_one_run(pair, clients, "intersect", tables)
    assert rows(r.frame) == [(f"k{i}", i * i) for i in range(60, 100)]
    assert s.frame is None


def test_union_gives_what_one_run_gives(pair: Pair, clients: list[Client]) -> None:
    r, s = same_as_one_run(pair, clients, "union", [keys(range(50)), keys(range(20, 90))])
    assert len(r.frame) == 90 and s.frame is None


def test_rows_of_the_sender_come_along(pair: Pair, clients: list[Client]) -> None:
    theirs = keys(range(60, 200)).rename(columns={"n": "theirs"})
    sides = ({"receive_columns": ["theirs"]}, {"send_columns": ["theirs"]})
    r, _ = same_as_one_run(pair, clients, "intersect", [keys(range(100)), theirs], sides)
    assert [row[-1] for row in rows(r.frame)] == [str(i * i) for i in range(60, 100)]


def test_what_may_cost_matches_is_said_of_all_partitions_together(
    pair: Pair, clients: list[Client], caplog: pytest.LogCaptureFixture
) -> None:
    ours = keys(range(40))
    ours.loc[[1, 20, 39], "k"] += " "
    ours.loc[[2, 38], "k"] = ["NULL", "n/a"]
    with caplog.at_level(logging.INFO, logger="veilset"):
        done(run(pair, clients, "intersect", parts(ours, keys(range(40))), {}))
    told = [record.getMessage() for record in caplog.records if "does not match" in record.getMessage()]
    assert told == [
        "the table of the workers: the key begins or ends with white space in 3 rows, has capital letters in 1 row, stands for "
        "no value, like NULL, in 2 rows: if the other side writes it differently, it does not match; see normalize"
    ]


def test_both_get_the_result(pair: Pair, clients: list[Client]) -> None:
    r, s = same_as_one_run(pair, clients, "intersect", [keys(range(40)), keys(range(30, 99))], both=True)
    assert len(r.frame) == len(s.frame) == 10


def test_a_key_that_comes_several_times_in_several_partitions(pair: Pair, clients: list[Client]) -> None:
    ours = pandas.concat([keys(range(30)), keys(range(30)).assign(n=7)], ignore_index=True)
    ours.loc[3, "k"] = ""
    sides = ({"empty_keys": "skip", "duplicates": "all"}, {"duplicates": "first"})
    theirs = pandas.concat([keys(range(10, 40))] * 2, ignore_index=True)
    r, _ = same_as_one_run(pair, clients, "intersect", [ours, theirs], sides)
    assert len(r.frame) == 40
    # The row that is kept for a repeated key does not depend on which partition is ready first.
    r, _ = same_as_one_run(pair, clients, "intersect", [ours, theirs], ({"empty_keys": "skip"}, {}))
    assert [n for _, n in rows(r.frame)] == [i * i for i in range(10, 30)]


def test_nothing_in_common_and_nothing_at_all(pair: Pair, clients: list[Client]) -> None:
    r, _ = same_as_one_run(pair, clients, "intersect", [keys(range(9)), keys(range(50, 60))])
    assert len(r.frame) == 0
    nothing = keys(range(1))[:0]
    r, _ = same_as_one_run(pair, clients, "intersect", [keys(range(9)), nothing])
    assert len(r.frame) == 0


def same(one: pandas.DataFrame, other: pandas.DataFrame) -> None:
    """Checks that both have the same values, of the same Python types, in the same dtypes."""
    assert list(one.dtypes) == list(other.dtypes)
    for name in other.columns:
        assert list(map(repr, one[name])) == list(map(repr, other[name])), name


#: More digits than a float has.
BIG = 143349558619761321


def typed(first: int, number: int) -> pandas.DataFrame:
    """Columns of several dtypes, in which a default conversion would lose something."""
    at = range(first, first + number)
    frame = pandas.DataFrame({
        "k": pandas.Series([BIG + i for i in at]),
        "n": pandas.Series([None if i % 3 == 0 else BIG + i for i in at], dtype="Int64"),
        "plain": pandas.Series([BIG + i for i in at]),
        "any": pandas.Series([None if i % 2 else decimal.Decimal(i) for i in at], dtype=object),
        "empty first": pandas.Series([None if i < number // 2 else BIG for i in at], dtype=object),
        "kind": pandas.Series([f"kind {i % 2}" for i in at], dtype="category"),
        "period": pandas.Series(pandas.period_range("2024-01", periods=number, freq="M")),
    })
    frame.index = pandas.Index(range(100, 100 + number), name="row")
    return frame


def as_they_are(*tables: pandas.DataFrame) -> list[Any]:
    """Like `parts`, but keeps Python objects that Dask would convert to text."""
    with dask.config.set({"dataframe.convert-string": False}):
        return parts(*tables)


@pytest.mark.parametrize("text", [False, True])
def test_rows_come_back_bit_for_bit(pair: Pair, clients: list[Client], text: bool) -> None:
    ours, theirs = typed(0, 40), typed(30, 40)[["k"]]
    r, _ = done(run(pair, clients, "intersect", as_they_are(ours, theirs)))
    same(r.frame, ours[30:])
    assert list(r.frame.index) == list(ours.index[30:]) and r.frame.index.name == "row"
    if text:
        # One key of the other side, in one of the shards, is not an integer.
        theirs = theirs.astype(str)
        theirs.iloc[-1, 0] = "a text"
    r, _ = done(run(pair, clients, "union", as_they_are(ours, theirs)))
    one, _ = pair.both("union", (ours, {}), (theirs, {}), {"key": "k"})
    assert len(r.frame) == 70
    same(r.frame[:40], one.frame[:40])
    assert str(r.frame["n"].dtype) == str(r.frame["plain"].dtype) == "Int64"
    assert str(r.frame["k"].dtype) == ("object" if text else "Int64")
    new = list(map(str, r.frame["k"][40:]))
    assert sorted(new) == sorted(map(str, one.frame["k"][40:])) and ("a text" in new) == text
    # A partition without result rows has the same types as the others.
    r, _ = done(run(pair, clients, "union", as_they_are(ours, ours[["k"]])))
    same(r.frame, one.frame[:40] if not text else r.frame)
    assert str(r.frame["k"].dtype) == "Int64"


def test_partitions_do_not_change_what_a_key_is(pair: Pair, clients: list[Client]) -> None:
    # The first partition has only numbers, and the second has no values.
    objects = [5, decimal.Decimal("1.0"), None, None, "5.0", datetime.date(2024, 1, 31), b"x".decode(), decimal.Decimal("1.25")]
    ours = pandas.DataFrame({"k": pandas.Series(objects, dtype=object), "n": range(8)})
    theirs = pandas.DataFrame({"k": ["1.0", "1.25", "2024-01-31", "5", "x"]})
    with dask.config.set({"dataframe.convert-string": False}):
        table = dask.dataframe.from_pandas(ours, npartitions=4, sort=False)
    assert str(table.dtypes["k"]) == "object"
    sides = ({"empty_keys": "skip"}, {})
    r, _ = done(run(pair, clients, "intersect", [table, parts(theirs)[0]], sides=sides))
    assert list(r.frame["n"]) == [0, 1, 5, 6, 7]
    # A value that cannot be a key is reported with its partition, and its row there.
    ours.loc[7, "k"] = 1.25
    with dask.config.set({"dataframe.convert-string": False}):
        table = dask.dataframe.from_pandas(ours, npartitions=4, sort=False)
    given = {**pair.options(0, "127.0.0.1:1"), "key": "k", "shards": 4, "lanes": {"0": "127.0.0.1:2"}}
    with pytest.raises(veilset.InputError, match='partition 3 of the frame, row 2, column "k": floating-point'):
        on_dask.intersect(table, client=clients[0], **given)


def test_names_and_columns_that_cannot_come_back_are_refused(pair: Pair, clients: list[Client]) -> None:
    given = {**pair.options(0, "127.0.0.1:1"), "key": "k", "shards": 4, "lanes": {"0": "127.0.0.1:2"}, "client": clients[0]}
    frame = keys(range(9)).rename(columns={"n": "__veilset_hash"})
    with pytest.raises(veilset.InputError, match="__veilset_hash.*Rename it"):
        on_dask.intersect(parts(frame)[0], **given)
    several = dask.dataframe.from_delayed(
        [dask.delayed(keys)(range(3)), dask.delayed(keys)(range(3)).astype({"k": "category"})], meta=keys(range(1)), verify_meta=False
    )
    numbers = dask.dataframe.from_delayed(
        [dask.delayed(keys)(range(3)), dask.delayed(lambda: pandas.DataFrame({"k": [5], "n": [5]}))()],
        meta=keys(range(1)), verify_meta=False,
    )
    with pytest.raises(veilset.InputError, match='column "k": its partitions have different types'):
        on_dask.intersect(numbers, **given)
    r, _ = done(run(pair, clients, "intersect", [several, parts(keys(range(2)))[0]], sides=({"duplicates": "all"}, {})))
    assert [n for _, n in rows(r.frame)] == [0, 1, 0, 1]


def test_a_result_that_cannot_be_made_is_no_result_lost(
    pair: Pair, clients: list[Client], monkeypatch: pytest.MonkeyPatch, home: pathlib.Path
) -> None:
    tables = parts(keys(range(40)), keys(range(30, 60)))
    sides = ({"job": home / "r.job"}, {"job": home / "s.job"})
    with monkeypatch.context() as patch:
        patch.setattr(on_dask._Crew, "frame", lambda _: 1 / 0)
        results = run(pair, clients, "intersect", tables, sides=sides)
        assert isinstance(results[0], veilset.OutputError) and "r.job: go on with it with resume" in str(results[0])
    assert (home / "r.job").exists() and (home / "s.job").exists()
    resumed = ({**sides[0], "resume": True}, {**sides[1], "resume": True})
    r, _ = done(run(pair, clients, "intersect", tables, sides=resumed))
    assert rows(r.frame) == [(f"k{i}", i * i) for i in range(30, 40)]
    assert not (home / "r.job").exists()


def watched(
    monkeypatch: pytest.MonkeyPatch, client: Client, then: Callable[[Any, int], None]
) -> list[list[tuple[int, list[int]]]]:
    """Calls `then` with the crew of this side and the number of results after each. Returns the rounds: lanes and shards."""
    rounds: list[list[tuple[int, list[int]]]] = []
    original = on_dask._Crew.run

    def run(self: Any, tickets: list[bytes]) -> Iterator[Any]:
        if self.table.client is not client:
            yield from original(self, tickets)
            return
        rounds.append([on_dask._native.ticket_lane(ticket) for ticket in tickets])
        for said in original(self, tickets):
            yield said
            if said is not None and said[0] is not None:
                then(self, sum(1 for _ in rounds))

    monkeypatch.setattr(on_dask._Crew, "run", run)
    return rounds


@pytest.mark.parametrize("side", [0, 1])
def test_the_shards_of_a_worker_that_dies_run_again(
    pair: Pair, clients: list[Client], monkeypatch: pytest.MonkeyPatch, side: int
) -> None:
    killed: list[int] = []

    def kill(crew: Any, _: int) -> None:
        if not killed:
            workers = crew.table.client.scheduler_info(n_workers=-1)["workers"]
            of = {str(worker["name"]): address for address, worker in workers.items()}
            pids = crew.table.client.run(os.getpid, workers=[of["1"]])
            killed.extend(pids.values())
            os.kill(killed[0], signal.SIGKILL)

    rounds = watched(monkeypatch, clients[side], kill)
    both = {"shards": 60, "connect_timeout": 10, "idle_timeout": 10}
    r, _ = done(run(pair, clients, "intersect", parts(keys(range(3000)), keys(range(2000, 4000))), both))
    assert rows(r.frame) == [(f"k{i}", i * i) for i in range(2000, 3000)]
    assert killed and len(rounds) > 1
    assert len([shard for lane in rounds[1] for shard in lane[1]]) < 60


def test_a_job_that_broke_off_goes_on(
    pair: Pair, clients: list[Client], monkeypatch: pytest.MonkeyPatch, home: Any
) -> None:
    tables = parts(keys(range(300)), keys(range(200, 400)))
    sides = ({"job": home / "r.job"}, {"job": home / "s.job"})
    both = {"shards": 12, "connect_timeout": 10, "idle_timeout": 10}
    results: list[int] = []

    def stop(_: Any, __: int) -> None:
        results.append(1)
        if len(results) == 4:
            raise RuntimeError("the cluster was shut down")

    with monkeypatch.context() as patch:
        watched(patch, clients[0], stop)
        broken = run(pair, clients, "intersect", tables, both, sides)
    assert all(isinstance(result, Exception) for result in broken), broken
    assert any("the workers could not be used: RuntimeError" in str(result) for result in broken), broken
    # The job continues neither without resume nor with another set.
    again = run(pair, clients, "intersect", tables, both, sides)
    assert any("resume" in str(result) for result in again)
    resumed = ({**sides[0], "resume": True}, {**sides[1], "resume": True})
    other = run(pair, clients, "intersect", parts(keys(range(301)), keys(range(200, 400))), both, resumed)
    assert any("began with another input" in str(result) for result in other), other
    # The table may be partitioned differently.
    rounds = watched(monkeypatch, clients[0], lambda *_: None)
    tables = [dask.dataframe.from_pandas(keys(range(300)), npartitions=7), tables[1]]
    r, _ = done(run(pair, clients, "intersect", tables, both, resumed))
    assert rows(r.frame) == [(f"k{i}", i * i) for i in range(200, 300)]
    assert len([shard for lane in rounds[0] for shard in lane[1]]) < 12
    # The receiver has its result, which the sender cannot know.
    assert [(home / name).exists() for name in ("r.job", "s.job")] == [False, True]


def refused(pair: Pair, client: Client, data: Any, **options: Any) -> str:
    given = {**pair.options(0, "127.0.0.1:1"), "key": "k", "shards": 4, "client": client, **options}
    with pytest.raises(veilset.UsageError) as raised:
        on_dask.intersect(data, **given)
    return str(raised.value)


def test_what_cannot_be_is_refused_before_anything_is_sent(pair: Pair, clients: list[Client]) -> None:
    table, client = parts(keys(range(9)))[0], clients[0]
    lanes = {"0": "127.0.0.1:2"}
    assert "no Dask data frame" in refused(pair, client, keys(range(9)), lanes=lanes)
    assert "no Dask data frame" in refused(pair, client, table["k"], lanes=lanes)
    assert "output_format does not apply" in refused(pair, client, table, lanes=lanes, output_format="csv")
    assert "Give the name of the column" in refused(pair, client, table, lanes=lanes, key=pandas.Series(["k0"]))
    assert "shards" in refused(pair, client, table, lanes=lanes, shards=None)
    assert "lanes" in refused(pair, client, table)
    assert "lanes" in refused(pair, client, table, lanes=["127.0.0.1:2"])
    assert "no such worker" in refused(pair, client, table, lanes={"nobody": "127.0.0.1:2"})
    connecting = {"listen": None, "connect": "127.0.0.1:1"}
    assert "lanes" in refused(pair, client, table, **connecting)
    assert "lanes" in refused(pair, client, table, lanes=lanes, **connecting)
    assert "output" in refused(pair, client, table, lanes=lanes, output="result.csv")


def other_each_time(part: pandas.DataFrame, folder: str) -> pandas.DataFrame:
    """Returns certain rows the first time that a worker computes them, and others the next time."""
    seen = pathlib.Path(folder) / f"{part['n'].iloc[0]}"
    again, _ = seen.exists(), seen.touch()
    return part.assign(k="x" + part["k"]) if again else part


def test_data_that_differ_each_time_give_no_wrong_result(
    pair: Pair, clients: list[Client], monkeypatch: pytest.MonkeyPatch, home: pathlib.Path
) -> None:
    ours, theirs = parts(keys(range(40)), keys(range(30, 60)))
    ours = ours.map_partitions(other_each_time, str(home), meta=ours._meta)
    cut = on_dask._Crew.cut

    def lost(crew: Any, key: bytes) -> None:
        cut(crew, key)
        if crew.table.client is clients[0]:
            for pid in clients[0].run(os.getpid).values():
                os.kill(pid, signal.SIGKILL)
            time.sleep(1)
            clients[0].wait_for_workers(2)

    monkeypatch.setattr(on_dask._Crew, "cut", lost)
    results = run(pair, clients, "intersect", [ours, theirs], {"connect_timeout": 10})
    assert all(isinstance(result, Exception) for result in results), results
    assert "has other rows now" in str(results[0])


def test_a_key_column_that_is_not_there(pair: Pair, clients: list[Client]) -> None:
    given = {**pair.options(0, "127.0.0.1:1"), "key": "mail", "shards": 4, "lanes": {"0": "127.0.0.1:2"}}
    with pytest.raises(veilset.InputError, match="mail") as raised:
        on_dask.intersect(parts(keys(range(9)))[0], client=clients[0], **given)
    # The message names no column that is not the user's.
    assert "__veilset" not in str(raised.value)


def test_lanes_that_lead_nowhere(pair: Pair, clients: list[Client]) -> None:
    sides = ({}, {"lanes": [free_address(), free_address()]})
    results = run(pair, clients, "intersect", parts(keys(range(9)), keys(range(9))), {"connect_timeout": 3}, sides)
    assert all("no worker completed a shard" in str(result) for result in results), results


def test_the_index_and_its_divisions_come_back(pair: Pair, clients: list[Client]) -> None:
    ours = keys(range(60)).set_index(pandas.Index(range(100, 160), name="row"))
    given: list[Any] = []

    table = dask.dataframe.from_pandas(ours, npartitions=3)
    assert table.known_divisions
    address, places = free_address(), [free_address() for _ in range(2)]
    lanes: list[Any] = [dict(zip(["0", "1"], places)), places]
    tables = [table, parts(keys(range(40, 99)))[0]]

    def one(party: int) -> None:
        options = {**pair.options(party, address), "shards": 5, "lanes": lanes[party], "key": "k"}
        given.append((party, on_dask.intersect(tables[party], client=clients[party], **options)))

    threads = [threading.Thread(target=one, args=(party,)) for party in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    frame = dict(given)[0].frame
    assert frame.divisions == table.divisions
    found = clients[0].compute(frame).result()
    assert rows(found) == rows(ours[40:])
    assert list(found.index) == list(range(140, 160)) and found.index.name == "row"
    # The divisions are right: a row is found by them.
    assert clients[0].compute(frame.loc[150:151]).result()["k"].to_list() == ["k50", "k51"]
    # A union also has rows without an index, so it renumbers all rows, in each partition.
    r, _ = done(run(pair, clients, "union", tables))
    assert r.frame.index[0] == 0 and r.frame.index.name is None


def test_the_work_grows_with_the_partitions_and_not_with_their_square(
    pair: Pair, clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: list[int] = []
    submit = clients[0].submit
    monkeypatch.setattr(clients[0], "submit", lambda *given, **how: (tasks.append(1), submit(*given, **how))[1])
    numbers = []
    for partitions in (12, 24, 36):
        tasks.clear()
        ours = dask.dataframe.from_pandas(keys(range(200)), npartitions=partitions)
        r, _ = done(run(pair, clients, "intersect", [ours, parts(keys(range(150, 300)))[0]]))
        assert rows(r.frame) == [(f"k{i}", i * i) for i in range(150, 200)]
        numbers.append(len(tasks))
    assert numbers[2] - numbers[1] == numbers[1] - numbers[0], numbers
    # For each partition: what is handed over, what is known of it, the cut, a part of each bucket, and its rows, head and parts of each
    # shard in the end.
    assert numbers[1] - numbers[0] == 12 * (3 + 5 + 3 + 5), numbers


def logged(client: Client) -> str:
    """Returns what the workers and the scheduler logged."""
    of_workers = [line for lines in client.get_worker_logs().values() for _, line in lines]
    return "\n".join([*of_workers, *(line for _, line in client.get_scheduler_logs())])


def wrong_rows(part: pandas.DataFrame) -> pandas.DataFrame:
    return part.assign(k=(part["k"] + "x").astype("int64"))


def test_no_cell_is_in_an_error_nor_in_the_log_of_a_worker(
    pair: Pair, clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = clients[0]
    given = {**pair.options(0, "127.0.0.1:1"), "key": "k", "shards": 4, "lanes": {"0": "127.0.0.1:2"}, "client": client}
    frames = {
        "a float": pandas.DataFrame({"k": pandas.Series([MARK, float(MARK) + 0.5], dtype=object)}),
        "half a character": pandas.DataFrame({"k": pandas.Series([MARK, MARK + "\ud800"], dtype=object)}),
        "an odd one": pandas.DataFrame({"k": pandas.Series([MARK, [MARK]], dtype=object)}),
        "empty": pandas.DataFrame({"k": [MARK, ""]}),
        "complex": pandas.DataFrame({"k": [complex(int(MARK)), 1j]}),
    }
    for what, frame in frames.items():
        with dask.config.set({"dataframe.convert-string": False}):
            table = dask.dataframe.from_pandas(frame, npartitions=1)
        with pytest.raises(veilset.InputError, match='partition 0 of the frame.*column "k"') as raised:
            on_dask.intersect(table, **given)
        assert MARK not in said_of(raised.value), what
        assert raised.value.column == "k" and (what == "complex" or raised.value.row == 2), vars(raised.value)
    # A lane that fails has the rows and the secrets of its ticket among its arguments.
    tables = parts(*[pandas.DataFrame({"k": [f"{MARK}{i}" for i in range(20)]})] * 2)
    results = run(pair, clients, "intersect", tables, {"connect_timeout": 3}, ({}, {"lanes": [free_address(), free_address()]}))
    assert all("no worker completed a shard" in str(result) for result in results), results
    assert not any(MARK in said_of(result) for result in results)
    # Another error occurs while the rows are in memory.
    with monkeypatch.context() as patch:
        patch.setattr(on_dask._spread, "summed", broken)
        with pytest.raises(veilset.OutputError, match=r"a worker could not do its part: ValueError$") as failed:
            on_dask.intersect(tables[0], **given)
    assert MARK not in said_of(failed.value)
    assert MARK not in logged(client) + logged(clients[1])
    # Dask logs a table that cannot be computed, but the error contains none of it.
    with pytest.raises(veilset.InputError, match=r"partition \d of the frame: the rows could not be obtained \(ValueError\)") as lost:
        on_dask.intersect(tables[0].map_partitions(wrong_rows, meta=tables[0]._meta), **given)
    assert MARK not in said_of(lost.value)
    # Without our precaution, the log would show it.
    with pytest.raises(ValueError):
        client.submit(broken, frames["empty"]).result()
    assert MARK in logged(client)


def broken(*given: Any) -> None:
    raise ValueError(repr(given))


EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "proxy" / "haproxy.cfg"


@pytest.fixture
def proxied(tmp_path: pathlib.Path) -> Iterator[dict[str, str]]:
    """Yields the addresses of the example proxy, which leads to two workers and to whoever starts the job."""
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    assert program is not None, "HAProxy is missing (Debian: haproxy)"
    at = {name: free_address() for name in ("ENTRANCE", "COORDINATOR", "WORKER0", "WORKER1")}
    with open(tmp_path / "haproxy.log", "w") as log:
        proxy = subprocess.Popen([program, "-db", "-f", str(EXAMPLE)], env={**os.environ, **at, "ROUTE": "trial-7"},
                                 stdout=log, stderr=log)
    time.sleep(1)
    assert proxy.poll() is None, (tmp_path / "haproxy.log").read_text()
    yield at
    proxy.kill()
    proxy.wait()


def test_workers_behind_one_port(pair: Pair, clients: list[Client], proxied: dict[str, str]) -> None:
    lanes = {"0": proxied["WORKER0"], "1": proxied["WORKER1"]}
    sides = (
        {"listen": proxied["COORDINATOR"], "lanes": lanes, "route": "trial-7"},
        {"connect": proxied["ENTRANCE"], "lanes": None, "route": "trial-7"},
    )
    r, _ = done(run(pair, clients, "intersect", parts(keys(range(90)), keys(range(70, 200))), sides=sides))
    assert rows(r.frame) == [(f"k{i}", i * i) for i in range(70, 90)]


def test_a_label_that_no_worker_serves(pair: Pair, clients: list[Client], proxied: dict[str, str]) -> None:
    lanes = {"0": proxied["WORKER0"], "1": proxied["WORKER1"]}
    sides = (
        {"listen": proxied["COORDINATOR"], "lanes": lanes, "route": "trial-7"},
        {"connect": proxied["ENTRANCE"], "lanes": None, "route": "trial-8"},
    )
    both = {"connect_timeout": 5}
    results = run(pair, clients, "intersect", parts(keys(range(9)), keys(range(9))), both, sides)
    assert all("no worker completed a shard" in str(result) for result in results), results
    assert "lower-case" in refused(pair, clients[0], parts(keys(range(9)))[0], lanes={"0": "127.0.0.1:2"}, route="Trial")
