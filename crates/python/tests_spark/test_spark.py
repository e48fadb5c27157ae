"""Jobs on Spark: two companies, each with a cluster of two executors. Run by scripts/spark-tests."""

from __future__ import annotations

import inspect
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
from typing import Any

import pyspark.sql
import pytest
import veilset
import veilset.spark

HERE = pathlib.Path(__file__).parent
MASTER = "local-cluster[2,1,1024]"


def free_address() -> str:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{s.getsockname()[1]}"


class Companies:
    """A receiver and a sender, each in a process of its own."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.lanes: list[str] = []
        self.identities = [veilset.Identity.new(folder / name) for name in ("r.pem", "s.pem")]

    def start(self, operation: str, sides: list[dict[str, Any]], **both: Any) -> list[subprocess.Popen[str]]:
        address, lanes = free_address(), [free_address() for _ in range(2)]
        self.lanes = lanes
        started = []
        for party, side in enumerate(sides):
            options = {
                "role": ("receiver", "sender")[party],
                ("listen", "connect")[party]: address,
                "peer": self.identities[1 - party].fingerprint,
                "identity": str(self.identities[party].path),
                "shards": 6,
                "lanes": lanes,
                "threads": 1,
                "connect_timeout": 120,
                "audit_log": None,
                "allow_small": True,
                **both,
                **side.pop("options", {}),
            }
            given = {"operation": operation, "options": options, "master": MASTER, **side}
            started.append(
                subprocess.Popen(
                    [sys.executable, str(HERE / "party.py"), json.dumps(given)],
                    stdout=subprocess.PIPE,
                    stderr=open(self.folder / f"{party}.log", "a"),
                    text=True,
                    env={**os.environ, "PYSPARK_PYTHON": sys.executable},
                )
            )
        return started

    def run(self, operation: str, sides: list[dict[str, Any]], **both: Any) -> list[dict[str, Any]]:
        return done([self.outcome(process) for process in self.start(operation, sides, **both)])

    def outcome(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        text, _ = process.communicate(timeout=300)
        assert text.strip(), [(self.folder / f"{party}.log").read_text()[-3000:] for party in range(2)]
        outcome: dict[str, Any] = json.loads(text.splitlines()[-1])
        return outcome


def done(outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    assert all("error" not in outcome for outcome in outcomes), outcomes
    return outcomes


@pytest.fixture
def companies(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Companies:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Companies(tmp_path)


def row(i: int) -> list[Any]:
    return [f"k{i}", i * i]


def test_intersect(companies: Companies) -> None:
    r, s = companies.run("intersect", [{"keys": [0, 300]}, {"keys": [200, 400]}])
    assert sorted(r["rows"]) == sorted(row(i) for i in range(200, 300)), (r, s)
    assert r["columns"] == ["k", "n"] and r["matches"] == 100 and s["rows"] is None


def test_union(companies: Companies) -> None:
    r, s = companies.run("union", [{"keys": [0, 50], "twice": True}, {"keys": [20, 90]}])
    assert sorted(map(str, r["rows"])) == sorted(
        [str(row(i)) for i in range(50)] + [str([f"k{i}", None]) for i in range(50, 90)]
    ), (r, s)
    # The other side's rows come last.
    assert all(n is None for _, n in r["rows"][50:])


#: Columns in which a default conversion would lose something.
TYPED = """select 143349558619761321 + id as k, if(id % 3 = 0, null, 143349558619761321 + id) as n, cast(id as decimal(38, 9)) / 3 as d,
    date '9999-12-31' as day, timestamp '1582-10-15 00:00:00.000001' + make_interval(0, 0, 0, int(id)) as at,
    timestamp_ntz '0001-01-01 00:00:00.000001' as plain, unhex('ff00') as raw,
    array(id, null) as some, named_struct('x', id) as one, map('x', id) as pairs, interval 1 day as wait from range(40)"""


def test_rows_come_back_as_they_were(companies: Companies) -> None:
    theirs = "select 143349558619761321 + id as k from range(30, 60)"
    r, _ = companies.run("intersect", [{"sql": TYPED}, {"sql": theirs}])
    assert sorted(map(str, r["rows"])) == sorted(str(row) for row in r["ours"] if row[0] >= 143349558619761351)
    # If one key in one shard is not an integer, all keys are text.
    for key, kind in (("k", "bigint"), ("if(k % 30 = 1, 'a text', string(k)) as k", "string")):
        r, _ = companies.run("union", [{"sql": TYPED}, {"sql": f"select {key} from ({theirs})"}])
        assert r["types"][:2] == [kind, "bigint"]
        ours = [[row[0] if kind == "bigint" else str(row[0]), *row[1:]] for row in r["ours"]]
        assert sorted(map(str, r["rows"][:40])) == sorted(map(str, ours))
        assert len(r["rows"]) == 60 and all(set(row[1:]) == {None} for row in r["rows"][40:])


def test_names_of_ours_are_refused(companies: Companies) -> None:
    outcomes = [companies.outcome(process) for process in companies.start(
        "intersect", [{"sql": "select 1 as k, 2 as __veilset_shard"}, {"keys": [0, 9]}], connect_timeout=5)]
    assert "__veilset_shard" in outcomes[0]["error"] and "Rename it" in outcomes[0]["error"], outcomes


#: The text that is searched for; no line of this file contains it.
MARK = "732" + "19"


def test_no_cell_is_in_an_error_nor_in_the_log(companies: Companies) -> None:
    """An error in a task is reported as our own, with its fields; an exception of Spark only by its kind."""
    rows = "select if(id = 7, {}, '732' || '19' || id) as k from range(20)"
    for key, begins, words in (
        ("''", "partition ", 'column "k": the key is empty'),
        ("raise_error('732' || '19')", "the frame: ", "the rows could not be obtained ("),
    ):
        wrong = {"sql": rows.format(key)}
        outcome = companies.outcome(companies.start("intersect", [wrong], connect_timeout=5)[0])
        assert outcome["error"].startswith(f"InputError: {begins}") and words in outcome["error"], outcome
        assert MARK not in outcome["error"] and "__veilset" not in outcome["error"], outcome
        if key == "''":
            assert MARK not in (companies.folder / "0.log").read_text()
    # The search would find it: Spark itself logs a query of the user.
    assert MARK in (companies.folder / "0.log").read_text()


def test_spark_connect_is_refused(companies: Companies) -> None:
    frame = object.__new__(type("DataFrame", (pyspark.sql.DataFrame,), {"__module__": "pyspark.sql.connect.dataframe"}))
    with pytest.raises(veilset.UsageError, match="the frame is one of Spark Connect"):
        veilset.spark.intersect(frame, shards=2, key="k", role="receiver", peer="p", listen="127.0.0.1:1", lanes=["127.0.0.1:2"])
    assert str(inspect.signature(veilset.spark.intersect)).startswith("(data: pyspark.sql.dataframe.DataFrame, *, lanes: ")


def test_an_executor_that_dies(companies: Companies) -> None:
    started = companies.start("intersect", [{"keys": [0, 3000]}, {"keys": [2000, 4000]}], shards=40)
    # Kill the receiver's process that listens for a lane, or is connected to the other side's.
    killed = False
    while not killed and started[0].poll() is None:
        time.sleep(0.02)
        at = _sockets({int(address.rpartition(":")[2]) for address in companies.lanes})
        for pid in _of(started[0].pid):
            if at & _open(pid):
                os.kill(pid, 9)
                killed = True
                break
    r, s = done([companies.outcome(process) for process in started])
    assert killed
    assert sorted(r["rows"]) == sorted(row(i) for i in range(2000, 3000)), (r, s)
    assert "barrier" in (companies.folder / "0.log").read_text()


def _of(pid: int) -> list[int]:
    """Returns the processes that descend from this one."""
    parents: dict[int, list[int]] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for at in found:
        found.extend(parents.get(at, []))
    return found[1:]


def _sockets(ports: set[int]) -> set[str]:
    """Returns the sockets at these ports of this machine."""
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return {f"socket:[{of[9]}]" for of in map(str.split, lines) if int(of[1].rpartition(":")[2], 16) in ports}


def _open(pid: int) -> set[str]:
    """Returns what this process has open."""
    try:
        return {os.readlink(entry) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:
        return set()
