"""Input that cannot be read is an error on our side, which says where; nobody else is contacted."""

from __future__ import annotations

import datetime
import re
import threading

import duckdb
import pandas
import polars
import pyarrow
import pytest
import veilset

SECRET = "cell-of-nobody-else"


class Stream:
    """An object that hands over ``of``, whatever it is."""

    def __init__(self, of):
        self.of = of

    def __arrow_c_stream__(self, requested_schema=None):
        return self.of() if callable(self.of) else self.of


def fails_half_way():
    schema = pyarrow.schema([("k", pyarrow.string())])

    def batches():
        for i in range(20):
            yield pyarrow.record_batch({"k": [f"{i}-{j}" for j in range(1000)]}, schema=schema)
        raise ConnectionResetError("the source went away")

    return pyarrow.RecordBatchReader.from_batches(schema, batches())


def changes_its_schema():
    schema = pyarrow.schema([("k", pyarrow.string())])

    def batches():
        yield pyarrow.record_batch({"k": ["a"]}, schema=schema)
        yield pyarrow.record_batch({"k": [1]})

    return pyarrow.RecordBatchReader.from_batches(schema, batches())


def raises(error):
    def give():
        raise error

    return Stream(give)


def query(sql):
    return duckdb.connect().query(sql)


INPUT, USAGE = veilset.InputError, veilset.UsageError
# The frame, the column, the row, and the class and words of the error.
CASES = {
    "no column": (lambda: polars.DataFrame({"x": ["a"]}), "k", None, INPUT, "there is no such column"),
    "no column (pandas)": (lambda: pandas.DataFrame({"x": ["a"]}), "k", None, INPUT, "there is no such column"),
    "no column (duckdb)": (lambda: query("select 1 as x"), "k", None, INPUT, "there is no such column"),
    "twice": (lambda: pandas.DataFrame([["a", "b"]], columns=["k", "k"]), "k", None, INPUT, "this name twice"),
    "twice (pyarrow)": (lambda: pyarrow.table([["a"], ["b"]], names=["k", "k"]), "k", None, INPUT, "this name twice"),
    "floats": (lambda: polars.DataFrame({"k": [1.5]}), "k", None, INPUT, "floating-point numbers cannot be a key"),
    "floats (pandas)": (lambda: pandas.DataFrame({"k": [1.5]}), "k", None, INPUT, "floating-point numbers"),
    "no zone": (lambda: query("select timestamp '2024-01-01 10:00:00' as k"), "k", None, INPUT, "time"),
    "nested": (lambda: polars.DataFrame({"k": [["a"]]}), "k", None, INPUT, "the column is nested"),
    "a struct": (lambda: polars.DataFrame({"k": [{"x": 1}]}), "k", None, INPUT, "nested"),
    "a map": (lambda: query("select map(['a'], [1]) as k"), "k", None, INPUT, "nested"),
    "a union": (lambda: query("select union_value(a := 1) as k"), "k", None, INPUT, ""),
    "an interval": (lambda: query("select interval 1 day as k"), "k", None, INPUT, ""),
    "objects": (lambda: polars.DataFrame({"k": [object()]}), "k", None, INPUT, "it holds Python objects"),
    "objects beside": (lambda: polars.DataFrame({"k": ["a"], "o": [object()]}), "o", None, INPUT, "Python objects"),
    "a float among others": (lambda: pandas.DataFrame({"k": [SECRET, None, 7.0]}), "k", 3, INPUT, "floating-point numbers"),
    "a list among others": (lambda: pandas.DataFrame({"k": [7, [SECRET]]}), "k", 2, INPUT, "of the type list has no text"),
    "no zone (objects)": (lambda: pandas.DataFrame({"k": ["a", datetime.datetime(2024, 1, 1)]}, dtype=object),
                          "k", 2, INPUT, "without a time zone"),
    "before all years": (lambda: pandas.DataFrame({"k": ["a", datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(
        datetime.timedelta(hours=9)))]}, dtype=object), "k", 2, INPUT, "out of range"),
    "half a character": (lambda: pandas.DataFrame({"k": ["\ud800"]}, dtype=object), "k", 1, INPUT, "(str)"),
    "complex": (lambda: pandas.DataFrame({"k": [1 + 2j]}), "k", None, INPUT, "(complex)"),
    "null": (lambda: polars.DataFrame({"k": ["a", None]}), "k", 2, INPUT, "the key is empty"),
    "null (pandas)": (lambda: pandas.DataFrame({"k": ["a", "b", None]}), "k", 3, INPUT, "the key is empty"),
    "null (NaN)": (lambda: pandas.DataFrame({"k": ["a", float("nan")]}), "k", 2, INPUT, "the key is empty"),
    "empty": (lambda: pyarrow.table({"k": ["a", ""]}), "k", 2, INPUT, "the key is empty"),
    "all null": (lambda: polars.DataFrame({"k": [None, None]}), "k", 1, INPUT, "the key is empty"),
    "no type": (lambda: pandas.DataFrame({"k": [None, None]}), "k", 1, INPUT, "the key is empty"),
    "a bad time": (lambda: pyarrow.table({"k": pyarrow.array([2**60]).view(pyarrow.time64("us"))}),
                   "k", 1, INPUT, "out of the range"),
    "bad text": (lambda: pyarrow.table({"k": pyarrow.array([b"\xff"]).view(pyarrow.string())}), None, None, INPUT,
                 "malformed"),
    "a query": (lambda: query(f"select cast('{SECRET[:0]}x' || i as int) as k from range(9) t(i)"), None, None, INPUT,
                r"the rows could not be obtained (ConversionException). What"),
    "a query (polars)": (lambda: polars.LazyFrame({"k": ["x"]}).select(polars.col("k").cast(polars.Int64)), None, None, INPUT,
                         "the rows could not be obtained (InvalidOperationError). What"),
    "a query half-way": (lambda: query("select case when i < 99999 then i::varchar else error('no') end as k"
                                       " from range(100000) t(i)"), None, None, INPUT, "could not be obtained"),
    "a generator": (fails_half_way, None, None, INPUT, "the next rows could not be obtained (IOError). What"),
    "another schema": (changes_its_schema, None, None, INPUT, "could not be obtained"),
    "an exception": (lambda: raises(ValueError("no data today")), None, None, INPUT, "the rows could not be obtained (ValueError). What"),
    "not a capsule": (lambda: Stream(5), None, None, TypeError, "PyCapsule"),
    "another capsule": (lambda: Stream(pyarrow.schema([]).__arrow_c_schema__()), None, None, ValueError, ""),
    "a number": (lambda: 5, None, None, USAGE, "a builtins.int cannot be read"),
    "nothing": (lambda: None, None, None, USAGE, "a builtins.NoneType cannot be read"),
    "a series": (lambda: pandas.Series(["a"]), None, None, USAGE, "pandas.Series cannot be read"),
    "a list": (lambda: [["a"], ["b"]], None, None, USAGE, "a builtins.list cannot be read"),
    "no files": (lambda: ["/nowhere/ours.csv", "/nowhere/more.csv"], None, None, INPUT, "/nowhere/ours.csv"),
    "a pyarrow array": (lambda: pyarrow.array(["a"]), None, None, USAGE, "Make it a pyarrow.Table"),
    "no file": (lambda: "/nowhere/ours.csv", None, None, INPUT, "/nowhere/ours.csv"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_an_error_and_nobody_hears_of_it(pair, listener, case):
    frame, column, row, kind, words = CASES[case]
    with pytest.raises((veilset.Error, TypeError, ValueError)) as raised:
        veilset.intersect(frame(), key="k", **{**pair.options(1, listener.address), "role": "receiver"})
    error = raised.value
    assert type(error) is kind and words in str(error), repr(error)
    if isinstance(error, veilset.InputError):
        assert (error.exit_code, error.column, error.row) == (3, column, row), (error, error.column, error.row)
        assert error.party is None and error.fault is None
    if isinstance(error, veilset.UsageError):
        assert error.exit_code == 2
    # Neither the message nor its cause contains a cell of ours.
    shown = f"{error} {error.__cause__}"
    assert SECRET not in shown and "--" not in re.sub("`[^`]*`", "", str(error)), shown
    # Nor does the message name a column that is not the user's.
    assert "__veilset" not in shown, shown
    assert not listener.heard()


def test_columns_without_values_come_back_as_they_were(pair):
    ours = polars.DataFrame({"k": ["a", "b"], "none": [None, None], "lists": [[], []], "struct": [{"x": None}] * 2,
                             "deep": [[[None]], []]})
    assert ours.schema["none"] == polars.Null
    receiver, _ = pair.both("intersect", (ours, {}), (polars.DataFrame({"k": ["b", "c"]}), {}), {"key": "k"})
    assert receiver.frame.equals(ours[1:]) and receiver.frame.schema["none"] == polars.Null
    both = {"key": ["k", "none"], "empty_keys": "keep"}
    theirs = polars.DataFrame({"k": ["b", "c"], "none": ["", "some"]})
    receiver, _ = pair.both("union", (ours, {}), (theirs, {}), both)
    assert receiver.frame["none"].to_list()[-1] == "some" and receiver.frame.height == 3


def test_a_frame_that_cannot_come_back_is_no_result_lost(pair, monkeypatch):
    ours = polars.DataFrame({"k": ["a", "b"]})
    monkeypatch.setattr(polars, "DataFrame", type("Broken", (), {"__init__": lambda self, of: 1 / 0}))
    with pytest.warns(RuntimeWarning, match="the result is a veilset.Frame"):
        receiver, _ = pair.both("intersect", (ours, {}), (ours, {}), {"key": "k"})
    assert isinstance(receiver.frame, veilset.Frame) and len(receiver.frame) == 2


def test_a_frame_of_pandas_that_cannot_come_back_shows_what_was_handed_over(pair, monkeypatch, home):
    frame = pandas.DataFrame({"k": ["a", "b", "c"], "other": [1, 2, 3]})
    theirs = pyarrow.table({"k": ["b", "z"]})
    monkeypatch.setattr(frame.iloc.__class__, "__getitem__", lambda self, of: 1 / 0 if getattr(of, "ndim", 0) == 1 else real(self, of))
    with pytest.warns(RuntimeWarning, match="with the columns k, row, because"):
        receiver, _ = pair.both("union", (frame, {}), (theirs, {}), {"key": "k"})
    # A column that was not handed over is left out: its values would not be ours.
    assert receiver.frame.to_pydict() == {"k": ["a", "b", "c", "z"], "row": [0, 1, 2, None]}


real = pandas.DataFrame({}).iloc.__class__.__getitem__


def test_what_a_job_keeps_is_there_until_the_caller_has_the_frame(pair, monkeypatch, home):
    ours, theirs = polars.DataFrame({"k": ["a", "b"]}), pyarrow.table({"k": ["b", "z"]})
    there = []
    back = veilset._run._back
    monkeypatch.setattr(veilset._run, "_back", lambda frame, of: (there.append((home / "job").exists()), back(frame, of))[1])
    pair.both("intersect", (ours, {"job": home / "job"}), (theirs, {}), {"key": "k", "shards": 2})
    assert any(there) and not (home / "job").exists()


def test_a_source_that_reads_in_python_needs_no_lock_that_we_hold(pair):
    """Python makes the batches in the thread of the run, while this thread waits."""
    schema = pyarrow.schema([("k", pyarrow.string())])
    threads = []

    def batches():
        for i in range(50):
            threads.append(threading.current_thread())
            yield pyarrow.record_batch({"k": [f"{i}"]}, schema=schema)

    reader = pyarrow.RecordBatchReader.from_batches(schema, batches())
    receiver, _ = pair.both("intersect", (reader, {}), (pyarrow.table({"k": ["3", "x"]}), {}), {"key": "k"})
    assert pyarrow.table(receiver.frame).column("k").to_pylist() == ["3"]
    assert len(threads) == 50 and threading.main_thread() not in threads
