"""Our rows come back bit for bit, whatever the dtype of a column is, and whatever the other side has."""

from __future__ import annotations

import datetime
import decimal
import uuid

import numpy
import pandas
import polars
import polars.testing
import pyarrow
import pytest
import veilset

#: More digits than a float has.
BIG = 143349558619761321


def pandas_columns():
    """Returns a column of each dtype, by its name: three values, and the dtype that it has in a union."""
    columns = {}
    for bits in (8, 16, 32, 64):
        for sign in ("int", "uint"):
            info = numpy.iinfo(f"{sign}{bits}")
            values = numpy.array([info.min, info.max, info.max - 1], info.dtype)
            nullable = ("Int" if sign == "int" else "UInt") + str(bits)
            columns[f"{sign}{bits}"] = (pandas.Series(values), nullable)
            columns[nullable] = (pandas.Series([info.min, None, info.max], dtype=nullable), nullable)
    for name in ("float16", "float32", "float64"):
        columns[name] = (pandas.Series([0.1, float("nan"), -0.0], dtype=name), name)
    for name in ("Float32", "Float64"):
        columns[name] = (pandas.Series([0.1, None, -0.0], dtype=name), name)
    columns["complex64"] = (pandas.Series([1j, 2, 3], dtype="complex64"), "complex64")
    columns["complex128"] = (pandas.Series([1j, 2, 3], dtype="complex128"), "complex128")
    columns["bool"] = (pandas.Series([True, False, True]), "boolean")
    columns["boolean"] = (pandas.Series([True, None, False], dtype="boolean"), "boolean")
    for unit in ("s", "ms", "us", "ns"):
        moments = pandas.Series(numpy.array([BIG // 10**9, 0, 1], f"datetime64[{unit}]"))
        columns[f"datetime64[{unit}]"] = (moments, f"datetime64[{unit}]")
        zoned = moments.dt.tz_localize("Asia/Tokyo")
        columns[f"datetime64[{unit}] with a zone"] = (zoned, str(zoned.dtype))
        columns[f"timedelta64[{unit}]"] = (
            pandas.Series(numpy.array([BIG // 10**9, 0, 1], f"timedelta64[{unit}]")), f"timedelta64[{unit}]")
    columns["object"] = (pandas.Series([BIG, "text", None], dtype=object), "object")
    columns["objects"] = (pandas.Series([decimal.Decimal("0.10"), datetime.date(2024, 1, 31), b"x"]), "object")
    columns["str"] = (pandas.Series(["a", None, ""], dtype="str"), "str")
    columns["string"] = (pandas.Series(["a", None, ""], dtype="string"), "string")
    columns["category"] = (pandas.Series(["a", None, "b"], dtype="category"), "category")
    columns["category of integers"] = (pandas.Series([BIG, None, 1], dtype=pandas.CategoricalDtype([BIG, 1, 2])), "category")
    columns["period"] = (pandas.Series(pandas.period_range("2024-01", periods=3, freq="M")), "period[M]")
    intervals = pandas.Series(pandas.arrays.IntervalArray.from_breaks([0.0, 1.0, 2.0, 3.0]))
    columns["interval of floats"] = (intervals, "interval[float64, right]")
    # No dtype holds these values and a missing one.
    intervals = pandas.Series(pandas.arrays.IntervalArray.from_breaks([0, 1, 2, BIG]))
    columns["interval of integers"] = (intervals, "object")
    columns["sparse integers"] = (pandas.Series(pandas.arrays.SparseArray([0, BIG, 0])), "Int64")
    columns["sparse floats"] = (pandas.Series(pandas.arrays.SparseArray([0.0, 0.5, 0.0])), "float64")
    for name, type_ in (("int64", pyarrow.int64()), ("decimal", pyarrow.decimal128(20, 2)), ("text", pyarrow.large_string()),
                        ("day", pyarrow.date32()), ("list", pyarrow.list_(pyarrow.int64()))):
        values = {"int64": [BIG, None, 1], "decimal": [decimal.Decimal("1.50"), None, decimal.Decimal("2.25")],
                  "text": ["a", None, ""], "day": [datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)],
                  "list": [[BIG], None, []]}[name]
        column = pandas.Series(pandas.array(values, dtype=pandas.ArrowDtype(type_)))
        columns[f"Arrow {name}"] = (column, str(column.dtype))
    return columns


def same(one, other):
    """Returns whether both are the same value, to the last bit."""
    one, other = (value.item() if isinstance(value, numpy.generic) else value for value in (one, other))
    missing = [value is None or value is pandas.NA or value is pandas.NaT or value != value for value in (one, other)]
    return all(missing) if any(missing) else (type(one), repr(one)) == (type(other), repr(other))


@pytest.mark.parametrize("new", [["a", "z"], ["a"]])
def test_rows_of_pandas_come_back_bit_for_bit(pair, new):
    columns = pandas_columns()
    frame = pandas.DataFrame({"key": ["a", "b", "c"], **{name: column for name, (column, _) in columns.items()}})
    before = frame.copy(deep=True)
    theirs = pandas.DataFrame({"key": new})
    receiver, _ = pair.both("intersect", (frame, {}), (pandas.DataFrame({"key": ["c", "a"]}), {}), {"key": "key"})
    pandas.testing.assert_frame_equal(receiver.frame, frame.iloc[[0, 2]])
    assert list(receiver.frame.dtypes) == list(frame.dtypes)
    receiver, _ = pair.both("union", (frame, {}), (theirs, {}), {"key": "key"})
    assert receiver.frame["key"].to_list() == ["a", "b", "c", *new[1:]]
    for name, (column, dtype) in columns.items():
        came = receiver.frame[name]
        # The same dtype, whatever the other side has.
        assert str(came.dtype) == dtype, name
        for row, value in enumerate(column):
            assert same(value, came.iloc[row]), (name, row)
        assert came.iloc[3:].isna().all(), name
    pandas.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("kind, keys, new, dtype", [
    ("int64", [BIG, BIG + 1, 5], [str(BIG + 2)], "Int64"),
    ("uint64", [2**64 - 1, 0, 5], [str(2**64 - 2)], "UInt64"),
    ("Int64", [BIG, BIG + 1, 5], [str(BIG + 2)], "Int64"),
    ("int64", [BIG, BIG + 1, 5], [], "Int64"),
    ("int64", [BIG, BIG + 1, 5], [str(BIG + 2), "text"], "object"),
    ("str", ["a", "b", "c"], ["d"], "str"),
    ("string", ["a", "b", "c"], ["d"], "string"),
    ("object", ["a", "b", "c"], ["d"], "object"),
    ("category", ["a", "b", "c"], ["d"], "str"),
    ("bool", [True, False], [], "boolean"),
    ("datetime64[us, UTC]", [datetime.datetime(2024, 1, 31, tzinfo=datetime.timezone.utc)], 
     [datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc)], "datetime64[us, UTC]"),
])
def test_keys_of_a_union_keep_their_dtype_or_stay_what_they_are(pair, kind, keys, new, dtype):
    column = pandas.Series(keys).astype(kind)
    frame = pandas.DataFrame({"key": column, "n": range(len(keys))})
    theirs = pandas.DataFrame({"key": pandas.Series(new, dtype=None if new and "UTC" in kind else "str")})
    receiver, _ = pair.both("union", (frame, {}), (theirs, {}), {"key": "key"})
    came, n = receiver.frame["key"], len(keys)
    assert str(came.dtype) == dtype
    assert all(same(one, other) for one, other in zip(column, came.iloc[:n]))
    assert sorted(map(str, came.iloc[n:])) == sorted(map(str, new))
    assert receiver.frame["n"].iloc[:n].to_list() == list(range(n)) and str(receiver.frame["n"].dtype) == "Int64"


def test_columns_that_a_union_could_not_tell_apart_are_refused(pair, listener):
    for labels in (["key", "n", "n"], ["key", 0, "0"], ["key", "key", "n"]):
        frame = pandas.DataFrame([["a", 1, 2]], columns=labels)
        with pytest.raises(veilset.InputError, match="two columns of this name"):
            veilset.union(frame, **pair.options(1, listener.address), key="key")
        assert not listener.heard()
    # An intersection takes its rows as they are.
    frame = pandas.DataFrame([["a", 1, 2], ["b", 3, 4]], columns=["key", "n", "n"])
    receiver, _ = pair.both("intersect", (frame, {}), (pandas.DataFrame({"key": ["b"]}), {}), {"key": "key"})
    pandas.testing.assert_frame_equal(receiver.frame, frame[1:])


def test_names_that_the_package_uses_may_be_names_of_columns(pair):
    frame = pandas.DataFrame({"key": ["a", "b"], "__veilset_row": [5, 6], "__veilset_row_": [7, 8]})
    for operation, rows in (("intersect", [6]), ("union", [5, 6, None])):
        receiver, _ = pair.both(operation, (frame, {}), (pandas.DataFrame({"key": ["b", "z"]}), {}), {"key": "key"})
        assert list(receiver.frame.columns) == list(frame.columns)
        assert [None if pandas.isna(row) else row for row in receiver.frame["__veilset_row"]] == rows


def test_a_reader_that_was_read_is_refused(pair, listener):
    table = pyarrow.table({"key": ["a", "b"]})
    options = {**pair.options(1, listener.address), "key": "key"}
    read = table.to_reader()
    read.read_all()
    with pytest.raises(veilset.InputError, match="no rows.*read before"):
        veilset.count(read, **options)
    assert not listener.heard()
    # The reader was read before, for instance by a check.
    reader = table.to_reader()
    results = pair.run("count", (reader, {}), (table, {}), {"key": "key"})
    assert [result.matches for result in results] == [2, None]
    with pytest.raises(veilset.InputError, match="read before"):
        veilset.count(reader, **options)
    assert not listener.heard()
    # A table without rows is a set without items.
    results = pair.both("count", (table[:0], {}), (table, {}), {"key": "key"})
    assert results[0].matches == 0


UTC = datetime.timezone.utc
TOKYO = datetime.timezone(datetime.timedelta(hours=9))
# Python objects, and the text of each as a key.
OBJECTS = [
    ("text", "text"), (5, "5"), (2**70, str(2**70)), (numpy.int64(-7), "-7"), (True, "true"), (numpy.bool_(False), "false"),
    (decimal.Decimal("1.50"), "1.50"), (decimal.Decimal("1E+3"), "1000"), (decimal.Decimal("-0.00"), "0.00"),
    (datetime.date(2024, 1, 31), "2024-01-31"), (datetime.date(1, 1, 1), "0001-01-01"),
    (datetime.datetime(2024, 1, 31, 9, 0, 1, 500, TOKYO), "2024-01-31T00:00:01.0005Z"),
    (pandas.Timestamp("2024-01-31T00:00:00.000000001Z"), "2024-01-31T00:00:00.000000001Z"),
    (datetime.time(1, 2, 3), "01:02:03"), (datetime.time(1, 2, 3, 40), "01:02:03.00004"),
    (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
]


@pytest.mark.parametrize("others", [[], ["text"], [decimal.Decimal("0.12345")], [7, None]])
def test_the_text_of_an_object_is_its_own_whatever_the_others_are(pair, others):
    for each in [[one] for one in OBJECTS] if not others else [OBJECTS]:
        objects = pandas.Series([of for of, _ in each] + others, dtype=object)
        theirs = pyarrow.table({"key": [text for _, text in each]})
        frame = pandas.DataFrame({"key": objects})
        receiver, _ = pair.both("intersect", (frame, {"empty_keys": "skip", "duplicates": "all"}), (theirs, {}), {"key": "key"})
        assert [repr(one) for one in receiver.frame["key"]] [:len(each)] == [repr(of) for of, _ in each]


# Values that cannot be keys also have a text when they are sent.
SENT = [
    (1.0, "1.0"), (-0.0, "-0.0"), (0.1, "0.1"), (1e16, "1e16"), (123456789012345.6, "123456789012345.6"), (1e-5, "1e-5"),
    (5e-324, "5e-324"), (-1.5e300, "-1.5e300"), (float("inf"), "inf"), (numpy.float64(2.5e-7), "2.5e-7"), (numpy.float32(0.1), "0.1"),
    (datetime.datetime(2024, 1, 31, 9, 0, 1, 500), "2024-01-31T09:00:01.0005"),
    (numpy.datetime64("2024-01-31T09:00:01.000000001"), "2024-01-31T09:00:01.000000001"),
]


def test_the_text_of_an_object_that_is_sent_is_its_own_whatever_the_others_are(pair):
    each = [*OBJECTS, *SENT, (None, "")]
    keys = [str(i) for i in range(len(each))]
    frame = pandas.DataFrame({"key": keys, "v": pandas.Series([of for of, _ in each], dtype=object)})
    ours = pyarrow.table({"key": keys})
    receiver, _ = pair.both("intersect", (ours, {"receive_columns": "v"}), (frame, {"send_columns": "v"}), {"key": "key"})
    assert receiver.frame["v"].to_pylist() == [text for _, text in each]
    # The text is the one that a column of the type has.
    typed = [one for one in [*OBJECTS, *SENT] if isinstance(one[0], (str, bool, float, datetime.date, datetime.time, numpy.generic))]
    for of, text in typed:
        column = pandas.DataFrame({"key": ["0"]}).assign(v=[of]) if not isinstance(of, numpy.generic) else None
        theirs = pyarrow.table({"key": ["0"], "v": pyarrow.array([of])}) if column is None else pyarrow.Table.from_pandas(column)
        receiver, _ = pair.both("intersect", (ours, {"receive_columns": "v"}), (theirs, {"send_columns": "v"}), {"key": "key"})
        assert receiver.frame["v"].to_pylist() == [text], (of, theirs.schema)


def test_bytes_among_objects_are_keys_as_bytes_only(pair, listener):
    frame = pandas.DataFrame({"key": pandas.Series([b"\xff", "text", 5], dtype=object)})
    theirs = pyarrow.table({"key": pyarrow.array([b"\xff", b"5"])})
    receiver, _ = pair.both("intersect", (frame, {}), (theirs, {}), {"key": "key", "encoding": "bytes"})
    assert receiver.frame["key"].to_list() == [b"\xff", 5]
    with pytest.raises(veilset.InputError, match="binary, not text"):
        veilset.count(frame, **pair.options(1, listener.address), key="key")
    assert not listener.heard()


def test_all_columns_of_pandas_go_to_a_file(pair, tmp_path):
    frame = pandas.DataFrame({"n": [1, 2], "key": ["a", "b"], "t": ["x", None]})
    out = tmp_path / "out.parquet"
    for operation, rows in (("intersect", [("b", 2, None)]), ("union", [("a", 1, "x"), ("b", 2, None), ("z", None, None)])):
        theirs = pyarrow.table({"key": ["b", "z"]})
        receiver, _ = pair.both(operation, (frame, {"output": out, "force": True}), (theirs, {}), {"key": "key"})
        assert receiver.frame is None
        assert polars.read_parquet(out).select("key", "n", "t").rows() == rows
    # Where only keys and numbers are needed, the other columns do not matter.
    odd = frame.assign(any=[object(), 1])
    receiver, _ = pair.both("count", (odd, {"output": tmp_path / "n.csv"}), (theirs, {}), {"key": "key"})
    assert receiver.matches == 1
    veilset.prepare(odd, key="key", output=tmp_path / "half", identity=pair.identities[0])
    # A value that a file cannot hold is refused, not left out.
    result = pair.run("intersect", (frame.assign(any=[object(), 1]), {"output": out, "force": True, "connect_timeout": 1}),
                      (theirs, {"connect_timeout": 1}), {"key": "key"})[0]
    assert isinstance(result, veilset.InputError) and result.column == "any"


def arrow_columns():
    """Returns a column of each Arrow type: three values, one of them missing."""
    day, when = datetime.date(2024, 1, 31), datetime.datetime(2024, 1, 31, 1, 2, 3)
    of = {
        **{f"{sign}{bits}": [2 ** (bits - 2), None, 1] for sign in ("int", "uint") for bits in (8, 16, 32, 64)},
        "float16": [numpy.float16(0.5), None, numpy.float16(-0.0)], "float32": [0.5, None, -0.0], "float64": [0.1, None, -0.0],
        "bool_": [True, None, False], "string": ["a", None, ""], "large_string": ["a", None, ""], "string_view": ["a", None, ""],
        "binary": [b"\xff", None, b""], "large_binary": [b"\xff", None, b""], "binary_view": [b"\xff", None, b""],
        "date32": [day, None, datetime.date(1, 1, 1)], "date64": [day, None, datetime.date(9999, 12, 31)],
        "month_day_nano_interval": [(1, 2, 3), None, (0, 0, 0)],
    }
    columns = {name: pyarrow.array(values, getattr(pyarrow, name)()) for name, values in of.items()}
    for unit in ("s", "ms", "us", "ns"):
        columns[f"timestamp {unit}"] = pyarrow.array([when, None, when], pyarrow.timestamp(unit))
        columns[f"timestamp {unit} with a zone"] = pyarrow.array([when, None, when], pyarrow.timestamp(unit, "Asia/Tokyo"))
        columns[f"duration {unit}"] = pyarrow.array([5, None, -5], pyarrow.duration(unit))
        width = "32" if unit in ("s", "ms") else "64"
        columns[f"time {unit}"] = pyarrow.array([5, None, 0], pyarrow.int32() if width == "32" else pyarrow.int64()).cast(
            getattr(pyarrow, f"time{width}")(unit))
    for name, type_, values in [
        ("decimal32", pyarrow.decimal32(5, 2), [decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")]),
        ("decimal64", pyarrow.decimal64(15, 2), [decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")]),
        ("decimal128", pyarrow.decimal128(38, 2), [decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")]),
        ("decimal256", pyarrow.decimal256(70, 2), [decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")]),
        ("fixed", pyarrow.binary(2), [b"ab", None, b"cd"]), ("list", pyarrow.list_(pyarrow.int64()), [[BIG], None, []]),
        ("large list", pyarrow.large_list(pyarrow.int64()), [[BIG], None, []]),
        ("fixed list", pyarrow.list_(pyarrow.int64(), 2), [[BIG, 1], None, [1, 2]]),
        ("list view", pyarrow.list_view(pyarrow.int64()), [[BIG], None, []]),
        ("struct", pyarrow.struct([("x", pyarrow.int64())]), [{"x": BIG}, None, {"x": None}]),
        ("map", pyarrow.map_(pyarrow.string(), pyarrow.int64()), [[("x", BIG)], None, []]),
        ("null", pyarrow.null(), [None, None, None]),
    ]:
        columns[name] = pyarrow.array(values, type_)
    columns["dictionary"] = pyarrow.array(["x", None, "y"]).dictionary_encode()
    columns["dictionary of integers"] = pyarrow.array([BIG, None, 1]).dictionary_encode()
    columns["run ends"] = pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([2, 3], pyarrow.int32()), pyarrow.array([5, None]))
    columns["uuid"] = pyarrow.ExtensionArray.from_storage(
        pyarrow.uuid(), pyarrow.array([bytes(16), None, bytes(range(16))], pyarrow.binary(16)))
    columns["json"] = pyarrow.ExtensionArray.from_storage(pyarrow.json_(), pyarrow.array(['{"a":1}', None, "5"]))
    columns["bool8"] = pyarrow.ExtensionArray.from_storage(pyarrow.bool8(), pyarrow.array([1, None, 0], pyarrow.int8()))
    columns["opaque"] = pyarrow.ExtensionArray.from_storage(
        pyarrow.opaque(pyarrow.int32(), "kind", "vendor"), pyarrow.array([1, None, 2], pyarrow.int32()))
    return columns


@pytest.mark.parametrize("new", [["a", "z"], ["a"]])
def test_rows_of_arrow_come_back_bit_for_bit(pair, new):
    frame = pyarrow.table({"key": ["a", "b", "c"], **arrow_columns()})
    receiver, _ = pair.both("intersect", (frame, {}), (pyarrow.table({"key": ["c", "a"]}), {}), {"key": "key"})
    for name in frame.column_names:
        expected = frame.column(name).to_pylist()
        assert receiver.frame.schema.field(name).type == frame.schema.field(name).type, name
        assert repr(receiver.frame.column(name).to_pylist()) == repr([expected[0], expected[2]]), name
    receiver, _ = pair.both("union", (frame, {}), (pyarrow.table({"key": new}), {}), {"key": "key"})
    for name in frame.column_names:
        column = receiver.frame.column(name)
        assert column.type == frame.schema.field(name).type, name
        assert repr(column.slice(0, 3).to_pylist()) == repr(frame.column(name).to_pylist()), name
        if name != "key":
            assert column.slice(3).to_pylist() == [None] * (len(new) - 1), name
    assert receiver.frame.column("key").to_pylist() == ["a", "b", "c", *new[1:]]


@pytest.mark.parametrize("new", [["a", "z"], ["a"]])
def test_rows_of_polars_come_back_bit_for_bit(pair, new):
    day, time = datetime.date(2024, 1, 31), datetime.time(1, 2, 3, 4)
    when = datetime.datetime(9999, 12, 31, 1, 2, 3, 4)
    columns = [
        polars.Series("i8", [-128, 127, None], polars.Int8), polars.Series("i16", [-2**15, 1, None], polars.Int16),
        polars.Series("i32", [-2**31, 1, None], polars.Int32), polars.Series("i64", [BIG, -BIG, None], polars.Int64),
        polars.Series("u8", [255, 1, None], polars.UInt8), polars.Series("u16", [2**16 - 1, 1, None], polars.UInt16),
        polars.Series("u32", [2**32 - 1, 1, None], polars.UInt32), polars.Series("u64", [2**64 - 1, 1, None], polars.UInt64),
        polars.Series("f32", [0.1, float("nan"), None], polars.Float32), polars.Series("f64", [0.1, -0.0, None]),
        polars.Series("bool", [True, False, None]), polars.Series("text", ["a", "", None]),
        polars.Series("bytes", [b"\x00", b"", None]), polars.Series("day", [day, None, datetime.date(1, 1, 1)]),
        polars.Series("time", [time, None, time]),
        *(polars.Series(f"when {unit}", [when if unit != "ns" else datetime.datetime(2024, 1, 1), None, None], polars.Datetime(unit))
          for unit in ("ms", "us", "ns")),
        polars.Series("zoned", [when, None, None], polars.Datetime("us")).dt.replace_time_zone("UTC"),
        *(polars.Series(f"lasts {unit}", [datetime.timedelta(1, 2), None, None], polars.Duration(unit)) for unit in ("ms", "us", "ns")),
        polars.Series("decimal", [decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")], polars.Decimal(38, 2)),
        polars.Series("categorical", ["x", None, "y"], polars.Categorical), polars.Series("enum", ["x", None, "y"], polars.Enum(["y", "x"])),
        polars.Series("list", [[BIG], None, []], polars.List(polars.Int64)),
        polars.Series("array", [[BIG, 1], None, [1, 2]], polars.Array(polars.Int64, 2)),
        polars.Series("struct", [{"x": BIG}, None, {"x": None}], polars.Struct({"x": polars.Int64})),
        polars.Series("null", [None, None, None], polars.Null),
    ]
    frame = polars.DataFrame([polars.Series("key", ["a", "b", "c"]), *columns])
    receiver, _ = pair.both("intersect", (frame, {}), (polars.DataFrame({"key": ["c", "a"]}), {}), {"key": "key"})
    polars.testing.assert_frame_equal(receiver.frame, frame[[0, 2]])
    receiver, _ = pair.both("union", (frame, {}), (polars.DataFrame({"key": new}), {}), {"key": "key"})
    assert receiver.frame.schema == frame.schema
    polars.testing.assert_frame_equal(receiver.frame[:3], frame)
    assert receiver.frame["key"].to_list() == ["a", "b", "c", *new[1:]]
