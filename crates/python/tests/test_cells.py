"""Reports of wrong input contain no cell of ours: neither the error, nor its causes, nor warnings, nor logs."""

from __future__ import annotations

import datetime
import decimal
import io
import traceback
import warnings

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pytest
import veilset
from test_bad_input import Stream, raises

#: The text that is searched for; no line of this file contains it.
MARK = "732" + "19"
NUMBER = int(MARK)


class Odd:
    """An object that cannot be converted to text."""

    ndim = 0
    dtype = numpy.dtype("O")

    def item(self):
        raise KeyError(MARK)


def reader(error):
    schema = pyarrow.schema([("k", pyarrow.string())])

    def batches():
        yield pyarrow.record_batch({"k": [MARK]}, schema=schema)
        raise error

    return pyarrow.RecordBatchReader.from_batches(schema, batches())


def objects(*values, name="k", **others):
    return pandas.DataFrame({name: pandas.Series(values, dtype=object), **others})


def query(sql):
    return duckdb.connect().query(sql.format(MARK))


def lazy(expression):
    return polars.LazyFrame({"k": [MARK + "x"]}).select(expression)


def no_encoding():
    return pyarrow.array([MARK.encode() + b"\xff"])


def native():
    """Returns a veilset.Frame."""
    into = io.BytesIO()
    polars.DataFrame({"k": ["a"]}).write_ipc_stream(into)
    return veilset._native.frame_of(into.getvalue())


SEND = {"role": "sender", "send_columns": "x"}
#: The data and the options; all cause errors on our side.
WRONG = {
    "half a character": (lambda: objects("a", MARK + "\ud800"), {}),
    "a float": (lambda: objects(MARK, NUMBER + 0.5), {}),
    "a list": (lambda: objects([MARK]), {}),
    "an odd object": (lambda: objects("a", Odd()), {}),
    "out of bounds": (lambda: objects("a", numpy.datetime64(f"{MARK}-01-01")), {}),
    "before all years": (lambda: objects(datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=9)))), {}),
    "no number (decimal)": (lambda: objects(decimal.Decimal(f"sNaN{MARK}")), {}),
    "an odd index": (lambda: objects("a", key=[MARK]), {"key": pandas.Series([MARK])}),
    "bytes": (lambda: objects(MARK.encode() + b"\xff"), {}),
    "bytes (pyarrow)": (lambda: pyarrow.table({"k": no_encoding().view(pyarrow.string())}), {}),
    "two kinds": (lambda: pandas.DataFrame({"k": ["a", "b"], "x": [MARK, 5]}), {"output": "out.csv"}),
    "a large number": (lambda: pandas.DataFrame({"k": ["a"], "x": [NUMBER**20]}), {"output": "out.csv"}),
    "a complex one": (lambda: pandas.DataFrame({"k": [complex(NUMBER)]}), {}),
    "objects (polars)": (lambda: polars.DataFrame({"k": [object()], "x": [MARK]}), {}),
    "nested": (lambda: polars.DataFrame({"k": [[MARK]]}), {}),
    "a query (duckdb)": (lambda: query("select cast('{}x' as int) as k"), {}),
    "a query half-way (duckdb)": (lambda: query("select case when i < 99999 then '' || i else error('{}') end as k"
                                                " from range(100000) t(i)"), {}),
    "a query (polars)": (lambda: lazy(polars.col("k").cast(polars.Int64)), {}),
    "a query of a date (polars)": (lambda: lazy(polars.col("k").str.to_date("%Y")), {}),
    "a reader": (lambda: reader(ValueError(MARK)), {}),
    "a reader that is lost": (lambda: reader(ConnectionResetError(f"ValueError: {MARK}")), {}),
    "a stream": (lambda: raises(ValueError(MARK)), {}),
    "no stream": (lambda: Stream(MARK), {}),
    "a key that is repeated": (lambda: polars.DataFrame({"k": [MARK, MARK]}), {"duplicates": "error"}),
    "an empty key": (lambda: polars.DataFrame({"k": [MARK, ""]}), {}),
    "a text as a value": (lambda: polars.DataFrame({"k": ["a"], "x": [MARK + "x"]}), {"values": "x", "role": "sender"}),
    "too many decimals": (lambda: polars.DataFrame({"k": ["a"], "x": [f"{MARK}.5"]}), {"values": "x", "role": "sender"}),
    "too large a value": (lambda: polars.DataFrame({"k": ["a"], "x": [MARK * 9]}), {"values": "x", "role": "sender"}),
    "an object as a value": (lambda: objects(MARK + "x", name="x", k=["a"]), {"values": "x", "role": "sender"}),
    "too long a row": (lambda: polars.DataFrame({"k": ["a"], "x": [MARK * 99]}), SEND),
    "an object that is sent": (lambda: objects([MARK], name="x", k=["a"]), SEND),
    "half a character that is sent": (lambda: objects(MARK + "\udfff", name="x", k=["a"]), SEND),
    "a key of a file": (lambda: "k,x\na,b\n", {"key": pandas.Series([MARK])}),
    "a key of an index (file)": (lambda: "k,x\na,b\n", {"key": pandas.Index([MARK])}),
    "what is sent of a file": (lambda: "k,x\na,b\n", {"role": "sender", "send_columns": polars.Series([MARK])}),
    "a key of a stream": (lambda: Stream(polars.DataFrame({"k": ["a"]})), {"key": numpy.array([MARK])}),
    "a key of a frame of ours": (native, {"key": pandas.Series([MARK])}),
    "what is received": (native, {"receive_columns": pandas.Series([MARK])}),
    "what is renamed": (native, {"receive_columns": {"x": pandas.Series([MARK])}}),
    "what is renamed (key)": (native, {"receive_columns": {(MARK,): "x"}}),
    "words": (native, {"normalize": pandas.Series([MARK])}),
    "a file": (lambda: f'k,x\n"{MARK}\n', {}),
    "a file with other rows": (lambda: f"k,x\na,b,{MARK}\n", {}),
    "a file in another encoding": (lambda: f"k,x\n{MARK}\xff,b\n", {}),
}


def said_of(error):
    """Returns all text of an error and of its causes."""
    seen, rest = [], [error]
    while rest:
        one = rest.pop()
        if one is None or one in seen:
            continue
        seen.append(one)
        rest += [one.__cause__, one.__context__]
    texts = [f"{one} {one!r} {one.args} {vars(one)}" for one in seen]
    return "\n".join([*texts, *traceback.format_exception(error)])


@pytest.mark.parametrize("what", WRONG)
def test_no_cell_is_in_what_is_said_of_a_wrong_input(pair, listener, tmp_path, monkeypatch, caplog, what):
    monkeypatch.chdir(tmp_path)
    make, options = WRONG[what]
    data = make()
    if isinstance(data, str):
        (tmp_path / "ours.csv").write_bytes(data.encode("latin-1"))
        data = tmp_path / "ours.csv"
    operation = "sum" if "values" in options else "intersect"
    given = {**pair.options(1, listener.address), "role": "receiver", "key": "k", **options}
    caplog.set_level("DEBUG")
    with warnings.catch_warnings(record=True) as warned, pytest.raises((veilset.Error, TypeError)) as raised:
        warnings.simplefilter("always")
        getattr(veilset, operation)(data, **given)
    assert not listener.heard() and not isinstance(raised.value, veilset.BugError)
    said = "\n".join([said_of(raised.value), caplog.text, *(str(one.message) for one in warned)])
    assert MARK not in said, said
    # Our own errors say what to do.
    assert isinstance(raised.value, TypeError) or len(str(raised.value)) > 30, said


def test_a_cell_would_be_found():
    """Shows that the test above can fail."""
    try:
        try:
            int(MARK + "x")
        except ValueError as e:
            raise veilset.InputError("no cell") from e
    except veilset.InputError as e:
        assert MARK in said_of(e)
    try:
        try:
            int(MARK + "x")
        except ValueError:
            raise veilset.InputError("no cell") from None
    except veilset.InputError as e:
        assert MARK in said_of(e)


def test_no_cell_is_in_the_warning_for_a_frame_that_cannot_come_back(pair, monkeypatch):
    ours = polars.DataFrame({"k": ["a", MARK]})

    def broken(self, of):
        raise ValueError(MARK)

    monkeypatch.setattr(polars, "DataFrame", type("Broken", (), {"__init__": broken}))
    with pytest.warns(RuntimeWarning, match=r"cannot hold it \(ValueError\)") as warned:
        receiver, _ = pair.both("intersect", (ours, {}), (ours, {}), {"key": "k"})
    assert len(receiver.frame) == 2 and not any(MARK in str(one.message) for one in warned)
