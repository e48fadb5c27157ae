"""A frame in, the same kind of frame out."""

from __future__ import annotations

import datetime
import decimal
import random
import time

import duckdb
import pandas
import polars
import polars.testing
import pyarrow
import pyarrow.parquet
import pytest
import veilset
from conftest import free_address, process

OURS = {"email": ["ann@a", "bob@b", "cy@c", None], "n": [1, 2, 3, 4]}
THEIRS = {"mail": ["bob@b", "cy@c", "dan@d"], "plan": ["x", "y", "z"]}


class Stream:
    """An object that can only hand over a stream."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def kinds(columns):
    table = pyarrow.table(columns)
    return {
        "pandas": pandas.DataFrame(columns),
        "polars": polars.DataFrame(columns),
        "lazy": polars.LazyFrame(columns),
        "pyarrow": table,
        "batch": table.to_batches()[0],
        # A connection serves one thread at a time.
        "duckdb": duckdb.connect().from_arrow(table),
        "stream": Stream(table),
    }


RESULTS = {
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "lazy": polars.LazyFrame,
    "pyarrow": pyarrow.Table,
    "batch": pyarrow.Table,
    # A relation would be a query on a connection that may be closed.
    "duckdb": veilset.Frame,
    "stream": veilset.Frame,
}


def rows(frame):
    """Returns a frame's rows, in order of their text, with None for missing values."""
    if isinstance(frame, polars.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pandas.DataFrame):
        frame = pyarrow.Table.from_pandas(frame, preserve_index=False)
    return sorted((tuple(row.values()) for row in pyarrow.table(frame).to_pylist()), key=repr)


@pytest.mark.parametrize("kind", kinds(OURS))
def test_every_kind_of_frame_comes_back(pair, kind):
    ours, theirs = kinds(OURS)[kind], kinds(THEIRS)[kind]
    options = {"empty_keys": "skip"}
    sent = {"receive_columns": {"plan": "their_plan"}}
    receiver, sender = pair.both(
        "intersect", (ours, {"key": "email", **options, **sent}), (theirs, {"key": "mail", "send_columns": "plan"})
    )
    assert isinstance(receiver.frame, RESULTS[kind])
    assert rows(receiver.frame) == [("bob@b", 2, "x"), ("cy@c", 3, "y")]
    assert sender.frame is None and receiver.matches == 2 and sender.matches is None

    receiver, _ = pair.both("union", (ours, {"key": "email", **options, **sent}),
                            (theirs, {"key": "mail", "send_columns": "plan"}))
    assert isinstance(receiver.frame, RESULTS[kind])
    assert rows(receiver.frame) == [
        ("ann@a", 1, None), ("bob@b", 2, None), ("cy@c", 3, None), ("dan@d", None, "z")]

    receiver, sender = pair.both("id", (ours, {"key": "email", **options}), (theirs, {"key": "mail"}))
    assert isinstance(receiver.frame, RESULTS[kind]) and isinstance(sender.frame, RESULTS[kind])
    ids = [{row[0]: row[-1] for row in rows(result.frame)} for result in (receiver, sender)]
    assert ids[0]["bob@b"] == ids[1]["bob@b"] and ids[0]["ann@a"] not in ids[1].values()
    assert len(receiver.ids) == 4


def test_columns_keep_their_types_and_indexes_their_labels(pair):
    many = pyarrow.table({
        "key": pyarrow.array(["a", "b", "c"]).dictionary_encode(),
        "list": [[1], [], None],
        "struct": [{"x": 1}, {"x": 2}, None],
        "money": pyarrow.array([decimal.Decimal("1.50"), None, decimal.Decimal("2.25")]),
        "day": [datetime.date(2024, 1, 31), None, datetime.date(1999, 12, 31)],
        "time": pyarrow.array([1, 2, 3], pyarrow.timestamp("ns", "Europe/Rome")),
        "duration": pyarrow.array([1, 2, 3], pyarrow.duration("ms")),
        "float": [0.1, float("nan"), None],
    })
    theirs = pyarrow.table({"key": ["c", "a", "z"]})
    receiver, _ = pair.both("intersect", (many, {"key": "key"}), (theirs, {"key": "key"}))
    assert receiver.frame.schema == many.schema
    assert receiver.frame.drop(["float"]).equals(many.take([0, 2]).drop(["float"]))
    # In a union, new rows have no values, and their keys are text.
    receiver, _ = pair.both("union", (many, {"key": "key"}), (theirs, {"key": "key"}))
    assert receiver.frame.num_rows == 4
    assert [f.type for f in receiver.frame.schema][1:] == [f.type for f in many.schema][1:]
    assert receiver.frame.column("key").to_pylist() == ["a", "b", "c", "z"]
    assert receiver.frame.column("list").to_pylist() == [[1], [], None, None]

    frame = pandas.DataFrame(
        {"key": ["a", "b", "c"], "any": [object(), 1, "text"], "when": pandas.Timestamp("2024-01-31", tz="Asia/Tokyo")},
        index=pandas.Index([30, 20, 10], name="row"),
    )
    receiver, sender = pair.both("intersect", (frame, {"key": "key"}), (theirs, {"key": "key"}))
    pandas.testing.assert_frame_equal(receiver.frame, frame.loc[[30, 10]])


def test_labels_of_pandas_need_not_be_texts(pair):
    frame = pandas.DataFrame([["a", 1], ["b", 2]])
    theirs = pandas.DataFrame([["b"], ["c"]], columns=[7])
    receiver, _ = pair.both("intersect", (frame, {"key": 0}), (theirs, {"key": 7}))
    pandas.testing.assert_frame_equal(receiver.frame, frame[1:])
    receiver, _ = pair.both("union", (frame, {"key": 0}), (theirs, {"key": [7]}))
    assert list(receiver.frame.columns) == [0, 1] and receiver.frame[0].to_list() == ["a", "b", "c"]


def test_numbers_and_dates_are_the_same_keys_in_every_frame(pair):
    day = datetime.date(2024, 1, 31)
    ours = polars.DataFrame({"n": [1, 2, 3], "d": [day, day, None]})
    theirs = pandas.DataFrame({"n": ["3", "2", "5"], "d": ["2024-01-31", "2024-01-31", ""]})
    receiver, _ = pair.both(
        "intersect", (ours, {"key": ["n", "d"], "empty_keys": "keep"}), (theirs, {"key": ["n", "d"], "empty_keys": "keep"})
    )
    polars.testing.assert_frame_equal(receiver.frame, ours[1:2])


def test_a_query_that_fails_is_an_error_of_the_input(pair):
    query = duckdb.connect().query("select case when i < 99999 then cast(i as varchar) else error('no') end as k"
                                   " from range(100000) t(i)")
    with pytest.raises(veilset.InputError, match="the frame: the next rows could not be obtained"):
        veilset.count(query, **{**pair.options(0, "127.0.0.1:1"), "key": "k"})


def test_count_sum_and_share(pair):
    ours = polars.DataFrame({"k": ["a", "b", "c"]})
    theirs = pandas.DataFrame({"k": ["b", "c", "d"], "v": ["1.50", "2.25", "100"]})
    receiver, sender = pair.both("count", (ours, {}), (theirs, {}), {"key": "k"})
    assert (receiver.matches, sender.matches, receiver.frame) == (2, None, None)
    receiver, sender = pair.both("sum", (ours, {}), (theirs, {"values": "v"}), {"key": "k", "scale": 2})
    assert sender.sum == decimal.Decimal("3.75") and sender.matches == 2
    receiver, sender = pair.both("share", (ours, {}), (theirs, {}), {"key": "k"})
    assert receiver.frame.columns == ["row", "share"] and list(sender.map.columns) == ["k", "row"]
    assert len(receiver.frame) == len(sender.frame)


@pytest.mark.parametrize("n, m", [(0, 3), (1, 0), (1, 1), (70, 4000), (5000, 30)])
def test_sets_of_all_sizes_agree_with_the_plain_computation(pair, n, m):
    chosen = random.Random(n + m)
    everything = [f"{i}" for i in range(2 * (n + m) + 1)]
    ours, theirs = chosen.sample(everything, n), chosen.sample(everything, m)
    schema = pyarrow.schema([("k", pyarrow.string())])
    # Several batches, of which one is empty.
    table = lambda keys: pyarrow.concat_tables(  # noqa: E731
        pyarrow.table({"k": part}, schema=schema) for part in (keys[: len(keys) // 3], [], keys[len(keys) // 3:]))
    receiver, _ = pair.both("intersect", (table(ours), {}), (table(theirs), {}), {"key": "k"})
    assert receiver.frame.column("k").to_pylist() == [k for k in ours if k in set(theirs)]
    receiver, _ = pair.both("union", (table(ours), {}), (table(theirs), {}), {"key": "k"})
    assert sorted(receiver.frame.column("k").to_pylist()) == sorted(set(ours) | set(theirs))


def test_dictionaries_in_a_result_of_many_rows(pair, tmp_path):
    n = 10_000
    keys = pyarrow.array([str(i) for i in range(n)])
    kinds = pyarrow.array([f"kind {i % (7 + i // 1000)}" for i in range(n)])
    frame = pyarrow.table({"k": keys, "kind": kinds.dictionary_encode()})
    receiver, _ = pair.both("intersect", (frame, {}), (pyarrow.table({"k": keys}), {}), {"key": "k"})
    assert receiver.frame.schema == frame.schema
    assert receiver.frame.column("kind").to_pylist() == kinds.to_pylist()
    out = tmp_path / "out.arrow"
    pair.both("intersect", (frame, {"output": out}), (pyarrow.table({"k": keys}), {}), {"key": "k"})
    assert pyarrow.ipc.open_file(out).read_all().column("kind").to_pylist() == kinds.to_pylist()
    nested = frame.append_column("l", pyarrow.ListArray.from_arrays(range(n + 1), kinds.dictionary_encode()))
    result = pair.run("intersect", (nested, {"output": out, "force": True}), (keys_only(keys), {"connect_timeout": 1}),
                      {"key": "k"})[0]
    assert isinstance(result, veilset.InputError) and result.column == "l"


def keys_only(keys):
    return pyarrow.table({"k": keys})


def test_files_in_and_out(pair, tmp_path):
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.arrow"
    ours.write_text("k,n\na,1\nb,2\n")
    with pyarrow.ipc.new_file(theirs, pyarrow.schema([("k", pyarrow.string())])) as file:
        file.write_table(pyarrow.table({"k": ["b", "c"]}))
    receiver, _ = pair.both("intersect", (ours, {}), (str(theirs), {}), {"key": "k"})
    assert isinstance(receiver.frame, veilset.Frame)
    polars.testing.assert_frame_equal(polars.DataFrame(receiver.frame), polars.DataFrame({"k": ["b"], "n": ["2"]}))
    out = tmp_path / "out.parquet"
    frame = polars.DataFrame({"k": ["a", "b"], "n": [1, 2]})
    receiver, _ = pair.both("intersect", (frame, {"output": out}), (theirs, {}), {"key": "k"})
    assert receiver.frame is None
    polars.testing.assert_frame_equal(polars.read_parquet(out), frame[1:])
    assert receiver.report["output"] == str(out)


def test_no_other_package_is_needed_for_files_and_streams(pair, tmp_path):
    (tmp_path / "ours.csv").write_text("k,n\na,1\nb,2\n")
    (tmp_path / "theirs.csv").write_text("k\nb\nc\n")
    party = process("""
        import sys, threading
        class None_:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("pandas", "polars", "pyarrow", "duckdb", "numpy", "tqdm", "typing_extensions"):
                    raise ImportError(name)
        sys.meta_path.insert(0, None_())
        import veilset
        _, ours, theirs, *addresses, receiver, sender = sys.argv
        us = [veilset.Identity.load(path) for path in (receiver, sender)]
        def run(party, data, address):
            results[party] = veilset.intersect(data, key="k", role=("receiver", "sender")[party], peer=us[1 - party].fingerprint,
                identity=us[party], audit_log=None, threads=1, allow_small=True, **{("listen", "connect")[party]: address})
        for address in addresses:
            results = [None, None]
            threads = [threading.Thread(target=run, args=(party, (ours, theirs)[party], address)) for party in range(2)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            # The second time, the result is the data.
            ours = results[0].frame
            print(ours, results[0].matches)
    """, ours=tmp_path / "ours.csv", theirs=tmp_path / "theirs.csv", first=free_address(), second=free_address(),
                    receiver=pair.identities[0].path, sender=pair.identities[1].path)
    out, err = party.communicate(timeout=60)
    assert out == 2 * "<veilset.Frame of 1 row and the columns k, n> 1\n", err


def test_arrow_files_as_other_programs_compress_them(pair, tmp_path):
    frame = pandas.DataFrame({"k": [f"user{i}" for i in range(2000)], "n": range(2000)})
    frame.to_feather(tmp_path / "pandas.feather")
    for compression in ("lz4", "zstd"):
        polars.from_pandas(frame).write_ipc(tmp_path / f"{compression}.arrow", compression=compression)
    theirs = {"k": ["user7", "user1999", "other"]}
    for name in ("pandas.feather", "lz4.arrow", "zstd.arrow"):
        sends = (polars.DataFrame(theirs), {"key": "k"})
        receiver, _ = pair.both("intersect", (tmp_path / name, {"key": "k"}), sends, {})
        assert polars.DataFrame(receiver.frame).rows() == [("user7", 7), ("user1999", 1999)]


def test_files_of_polars_several_files_and_files_without_a_header(pair, tmp_path):
    ours, theirs = tmp_path / "ours.arrow", tmp_path / "theirs"
    polars.DataFrame({"k": ["a", "b", "c"], "n": [1, 2, 3]}).write_ipc(ours)
    theirs.mkdir()
    (theirs / "1.csv").write_text("x;c\ny;b\n")
    (theirs / "2.csv").write_text("z;d\n")
    for other in (theirs, [theirs / "1.csv", theirs / "2.csv"]):
        sends = (other, {"key": "2", "no_header": True})
        receiver, _ = pair.both("intersect", (ours, {"key": "k"}), sends, {})
        assert receiver.matches == 2 and polars.DataFrame(receiver.frame).rows() == [("b", 2), ("c", 3)]


def test_a_column_of_a_type_that_arrow_here_does_not_know_matters_only_if_it_is_needed(pair, listener, capfd):
    columns = {"k": ["a", "b", "c"], "wide": [1, None, 3], "n": [4, 5, 6]}
    ours = polars.DataFrame(columns, schema={"k": polars.String, "wide": polars.Int128, "n": polars.Int64})
    theirs = pyarrow.table({"k": ["b", "c", "d"]})
    with pytest.warns(RuntimeWarning, match='column "wide": it will be missing from the result.*integer of 128 bits'):
        receiver, _ = pair.both("intersect", (ours, {"key": "k"}), (theirs, {"key": "k"}))
    assert rows(receiver.frame) == [("b", 5), ("c", 6)]
    receiver, _ = pair.both("count", (ours, {"key": "k"}), (theirs, {"key": "k"}))
    assert receiver.matches == 2
    # For a file, the decoder's panic about the type shows nothing.
    ours.write_ipc(pair.folder / "ours.arrow")
    for data in (ours, pair.folder / "ours.arrow"):
        with pytest.raises(veilset.InputError, match="integer of 128 bits") as raised:
            veilset.count(data, key="wide", **pair.options(1, listener.address))
        assert raised.value.column == "wide"
    with pytest.raises(veilset.InputError, match="no such column"):
        veilset.count(pair.folder / "ours.arrow", key="none", **pair.options(1, listener.address))
    assert not listener.heard() and "panicked" not in capfd.readouterr().err


def test_a_frame_may_have_many_columns(pair):
    """The time is linear in the number of columns; a look through all of them for each of them took a minute and a half."""
    columns = 20_000
    ours = pandas.DataFrame({"k": ["a", "b"], **{f"c{i}": [i, -i] for i in range(columns)}})
    start = time.monotonic()
    receiver, _ = pair.both("intersect", (ours, {"key": "k"}), (pandas.DataFrame({"k": ["b"]}), {"key": "k"}))
    assert receiver.frame.equals(ours.iloc[1:])
    assert time.monotonic() - start < 30
