"""How a run is started, followed, stopped and refused."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time

import pandas
import polars
import pyarrow
import pytest
import veilset
from conftest import free_address
from veilset import _native, _options

OURS = polars.DataFrame({"k": ["a", "b", "c"]})


def alone(pair, data, **options):
    """Returns what a party raises before it contacts anybody."""
    with pytest.raises(veilset.Error) as raised:
        veilset.intersect(data, **{**pair.options(0, "127.0.0.1:1"), "key": "k", **options})
    return raised.value


def test_errors_say_where_and_whose_fault(pair):
    cases = [
        ({"data": polars.DataFrame({"other": ["a"]})}, veilset.InputError, "column \"k\": there is no such column"),
        ({"data": polars.DataFrame({"k": [1.5]})}, veilset.InputError, "floating-point numbers cannot be a key"),
        ({"data": polars.DataFrame({"k": [["a"]]})}, veilset.InputError, "the column is nested"),
        ({"data": polars.DataFrame({"k": ["a", None]})}, veilset.InputError, "the key is empty"),
        ({"data": pandas.DataFrame({"k": ["a", 1.5]})}, veilset.InputError, "row 2, column \"k\": floating-point numbers cannot be a key"),
        ({"data": pandas.DataFrame([["a", "b"]], columns=["k", "k"])}, veilset.InputError, "this name twice"),
        ({"data": 5}, veilset.UsageError, "a builtins.int cannot be read"),
        ({"data": OURS, "rolle": "x"}, veilset.UsageError, "rolle: intersect has no such option; did you mean \"role\""),
        ({"data": OURS, "max_row": "x"}, veilset.UsageError, "max_row"),
        ({"data": OURS, "role": "boss"}, veilset.UsageError, "possible values: receiver, sender"),
        ({"data": OURS, "key": None}, veilset.UsageError, "key is missing"),
        ({"data": OURS, "force": "yes"}, veilset.UsageError, "force: this is a string or a number, but the option takes"),
        ({"data": OURS, "peer": "nobody"}, veilset.UsageError, "there is no peer of this name"),
        ({"data": OURS, "identity": "/nowhere.pem"}, veilset.UsageError, "/nowhere.pem"),
    ]
    for given, kind, words in cases:
        error = alone(pair, given.pop("data"), **given)
        assert type(error) is kind and words in str(error), error
        assert error.exit_code == {veilset.InputError: 3, veilset.UsageError: 2}[kind]
        assert "--" not in re.sub("`[^`]*`", "", str(error)), error
    error = alone(pair, polars.DataFrame({"k": ["a", None]}))
    assert (error.file, error.row, error.column) == ("the frame", 2, "k")


def test_a_source_that_fails_half_way_is_an_error_of_the_input(pair):
    schema = pyarrow.schema([("k", pyarrow.string())])

    def batches():
        yield pyarrow.record_batch({"k": ["a"]}, schema=schema)
        raise ValueError("the disk is gone")

    reader = pyarrow.RecordBatchReader.from_batches(schema, batches())
    error = alone(pair, reader)
    # The original exception may name a cell.
    assert type(error) is veilset.InputError and "the disk is gone" not in str(error)
    assert "the next rows could not be obtained. What its library says of that is not shown" in str(error)


def test_a_disagreement_says_on_what(pair):
    for result in pair.run("union", (OURS, {"max_row": 64}), (OURS, {"max_row": 128}), {"key": "k"}):
        assert type(result) is veilset.DisagreementError and result.exit_code == 4
        (difference,) = result.differences
        assert difference["term"] == "max_row" and {difference["ours"], difference["theirs"]} == {"64", "128"}


def test_the_policy_the_book_and_the_log_apply_by_default(pair, home):
    config = home / "config" / "veilset"
    config.mkdir(parents=True)
    book = veilset.PeerBook()
    book.add("them", pair.identities[1].fingerprint, "127.0.0.1:1")
    assert book.peers() == [("them", pair.identities[1].fingerprint, "127.0.0.1:1")]
    receiver, _ = pair.both("count", (OURS, {"peer": "them"}), (OURS, {"audit_log": None}), {"key": "k"})
    assert receiver.matches == 3
    log = (home / "state" / "veilset" / "audit.jsonl").read_text().splitlines()
    assert len(log) == 2 and pair.identities[1].fingerprint in log[0]
    (config / "policy.toml").write_text("operations = [\"intersect\"]\n")
    with pytest.raises(veilset.RefusedError) as raised:
        veilset.count(OURS, **{**pair.options(0, "127.0.0.1:1"), "key": "k"})
    assert raised.value.exit_code == 8
    other = home / "other.toml"
    other.write_text("")
    receiver, _ = pair.both("count", (OURS, {}), (OURS, {}), {"key": "k", "policy": veilset.Policy(other)})
    assert receiver.matches == 3
    book.remove("them")
    assert book.peers() == []


def test_check_says_what_a_run_would_cost(pair):
    address = free_address()
    texts = [None, None]

    def one(party):
        texts[party] = str(veilset.check("intersect", OURS, key="k", **pair.options(party, address)))

    threads = [threading.Thread(target=one, args=(party,)) for party in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all("nothing was computed" in text and "bytes to the peer" in text for text in texts)


def test_a_run_is_held_to_its_check_and_small_sets_are_refused_by_default(pair, tmp_path):
    address, texts = free_address(), [None, None]
    files = [tmp_path / "r.json", tmp_path / "s.json"]

    def one(party):
        options = {**pair.options(party, address), "checked": files[party]}
        texts[party] = str(veilset.check("intersect", OURS, key="k", **options))

    threads = [threading.Thread(target=one, args=(party,)) for party in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(f"with checked={file}, a run is held to it" in text for file, text in zip(files, texts)), texts
    receiver, _ = pair.both("intersect", (OURS, {"checked": files[0]}), (OURS, {"checked": files[1]}), {"key": "k"})
    assert receiver.frame["k"].to_list() == ["a", "b", "c"]
    refused, told = pair.run("intersect", (OURS[1:], {"checked": files[0]}), (OURS, {}), {"key": "k"})
    assert isinstance(refused, veilset.RefusedError) and "the size of our set: 2, in the check 3" in str(refused)
    assert isinstance(told, veilset.PeerError)
    _, refused = pair.run("intersect", (OURS, {}), (OURS, {"allow_small": False}), {"key": "k"})
    assert isinstance(refused, veilset.RefusedError) and "give allow_small" in str(refused)


def test_progress_is_told_and_other_threads_go_on(pair):
    n = 20_000
    seen = []
    ticks = 0
    running = True

    def tick():
        nonlocal ticks
        while running:
            ticks += 1
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    frame = polars.DataFrame({"k": [str(i) for i in range(n)]})
    receiver, _ = pair.both("intersect", (frame, {"progress": seen.append}), (frame, {}), {"key": "k", "protocol": "dh-psi"})
    running = False
    ticker.join()
    assert receiver.matches == n and ticks > 20
    assert any(doing.stage and doing.done and doing.unit == "items" for doing in seen), seen


def test_the_bar_of_tqdm_is_closed(pair, capsys):
    receiver, _ = pair.both("count", (OURS, {"progress": True}), (OURS, {"progress": False}), {"key": "k"})
    assert receiver.matches == 3


def test_a_run_can_be_cancelled_and_the_peer_says_why(pair):
    # The other side has much to do, so that it is in the run when we stop.
    address = free_address()
    frame = polars.DataFrame({"k": [str(i) for i in range(100_000)]})
    outcome = []

    def other():
        try:
            veilset.union(frame, key="k", **pair.options(1, address))
        except veilset.Error as e:
            outcome.append(e)

    def stop(doing):
        if doing.stage:
            raise LookupError("enough")

    thread = threading.Thread(target=other)
    thread.start()
    with pytest.raises(LookupError):
        veilset.union(frame, key="k", progress=stop, **pair.options(0, address))
    thread.join()
    (error,) = outcome
    assert isinstance(error, (veilset.PeerError, veilset.NetworkError)), error
    if isinstance(error, veilset.PeerError):
        assert error.fault == "gave-up" and error.exit_code == 5


def test_coroutines_run_beside_each_other_and_can_be_cancelled(pair):
    async def both():
        address, other = free_address(), free_address()
        runs = [veilset.aio.count(OURS, key="k", **pair.options(party, address)) for party in range(2)]
        more = [veilset.aio.intersect(OURS, key="k", **pair.options(party, other)) for party in range(2)]
        results = await asyncio.gather(*runs, *more)
        waits = asyncio.create_task(veilset.aio.count(OURS, key="k", **pair.options(0, free_address())))
        await asyncio.sleep(0.3)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        return results

    results = asyncio.run(both())
    assert results[0].matches == 3 and results[2].frame.height == 3


def test_the_typed_options_are_those_of_the_program():
    own = {"progress"}
    unused = {"input", "quiet"}
    operations = [name for name, _ in _native.operations()]
    made = ["prepare", "filter build", "filter update", "filter info", "filter export"]
    assert sorted(_options.OF) == sorted([*operations, *made])
    for command, typed in _options.OF.items():
        (program,) = _native.options([command])
        assert program, command
        assert set(typed.__annotations__) - own == {name for name, *_ in program} - unused, command


def test_a_run_has_one_outcome_whoever_asks(pair):
    options = {name: getattr(value, "path", value) for name, value in pair.options(0, "127.0.0.1:1").items()}
    run = _native.Run("intersect", {**options, "input": "/nowhere.csv", "key": ["k"]})
    threads = [threading.Thread(target=run.wait, args=(10,)) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    with pytest.raises(veilset.InputError, match="/nowhere.csv"):
        run.result()
    with pytest.raises(RuntimeError, match="its result was taken before"):
        run.result()
    run = _native.Run("count", {**options, "input": "the frame", "format": "arrow", "key": ["k"]}, OURS)
    with pytest.raises(RuntimeError, match="not over"):
        run.result()
    run.cancel()
    assert run.wait(10)
    with pytest.raises(veilset.CancelledError) as raised:
        run.result()
    assert raised.value.exit_code == 130
    with pytest.raises(veilset.UsageError, match="not an operation"):
        _native.Run("nothing", {})


def test_what_the_program_would_print_is_logged(pair, caplog):
    frame = polars.DataFrame({"k": ["a", "a", "b"]})
    with caplog.at_level("INFO", logger="veilset"):
        pair.both("count", (frame, {}), (frame, {}), {"key": "k"})
    assert "the frame: 3 rows, 2 items, 1 row with a repeated key omitted" in caplog.text


def test_identities_are_made_once_and_loaded(home):
    made = veilset.Identity.new()
    assert made.fingerprint == veilset.Identity.load().fingerprint and re.match(r"^[0-9a-z-]+$", made.fingerprint)
    assert os.stat(made.path).st_mode & 0o077 == 0
    with pytest.raises(veilset.Error):
        veilset.Identity.new()


