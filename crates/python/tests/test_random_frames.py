"""Intersections of random frames in files have the rows, values and types that plain joins by pandas and by DuckDB have.

A frame has columns of the types that the formats share. pandas, pyarrow or DuckDB writes it as CSV, Parquet, Arrow or JSON lines, and
both references read the file again: a cell that its writer changed counts as what is in the file.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import math
import os
import random
import re
import time
import uuid
import warnings

import duckdb
import numpy
import pandas
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest
import veilset

#: Draws the same frames again.
SEED = os.environ.get("VEILSET_TEST_SEED") or str(int(time.time()) // 86400)
#: Two frames each.
DRAWS = 2000 if os.environ.get("VEILSET_TESTS") == "whole" else 20
#: Of files whose cells are text.
TEXT = [".csv", ".jsonl"]
EPOCH = datetime.datetime(1970, 1, 1)
#: How many of each unit are in a second.
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
WORDS = ["", "a", "A", " a ", "ä", "a\u0308", "\U0001f642", "0", "00", "-0", "1.0", "1e5", "NULL", "nan", "true", "True", "2024-01-31",
         "a,b", "a;b", "a\tb", "a|b", '"', 'a"b', '""', "'", "\\", "\\N", "#", "=1+1", "x" * 300, "\u200b", "\ufeff", "ﬁ", "日本",
         "x" * 12, "x" * 13]
NAMES = ["k", "key 2", "a,b", 'q"q', "Ä", "n", "é;|", "日本", "x\ty", "'", "id", "0"]
LINES = ["a\nb", "a\r\nb", "\n", "a\rb"]


# The columns.


def kinds_of(encoding):
    """Returns the kinds of values that a key may have."""
    kinds = ["integer", "decimal", "boolean", "day", "time", "instant", "uuid", "text", "text", "lines"]
    return kinds + ["binary"] * 3 if encoding == "bytes" else kinds


def values_of(kind, draw):
    """Returns values of a kind, which are also the possible keys of both frames. Those of time are numbers of nanoseconds."""
    some = range(draw.randint(1, 25))
    if kind == "integer":
        edges = [sign * 2**bits + by for bits in (0, 7, 8, 15, 16, 31, 32, 63, 64) for by in (-1, 0) for sign in (1, -1)]
        widest = draw.choice([7, 8, 15, 16, 31, 32, 63, 64])
        values = draw.choices([*edges, *(draw.randrange(2**7) for _ in some)], k=25)
        return [value for value in values if -(2 ** min(widest, 63)) <= value < 2**widest] or [5]
    if kind == "decimal":
        scale, digits = draw.choice([0, 1, 2, 9]), draw.choice([1, 5, 18, 27])
        exact = decimal.Context(prec=80)
        return [decimal.Decimal(draw.randint(-(10**digits), 10**digits)).scaleb(-scale, exact) for _ in some]
    if kind == "boolean":
        return [True, False]
    if kind == "float":
        edges = [0.0, -0.0, 0.1, 1e16, 1e15, 1e-4, 1e-5, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan"), 1.0, -2.5]
        # Of other sizes some have two shortest texts, as 2097152.25 of 32 bits does.
        sizes = [*range(-20, 5), *range(9, 13), *range(17, 21)]
        return [*draw.choices(edges, k=5), *(draw.gauss(0, 1) * 10.0 ** draw.choice(sizes) for _ in some)]
    if kind == "day":
        return [datetime.date.fromordinal(draw.choice([1, 719162, 719163, 3652059, draw.randint(1, 3652059)])) for _ in some]
    second = UNITS["ns"]
    step = draw.choice([second, second, 10**6, 10**3, 1])
    if kind == "time":
        return [draw.choice([0, 86400 * second - step, draw.randrange(0, 86400 * second, step)]) for _ in some]
    if kind in ("instant", "moment"):
        furthest = 2**63 - 2**63 % second
        return [draw.choice([0, -step, draw.randrange(-furthest, furthest, step)]) for _ in some]
    if kind == "uuid":
        return [uuid.UUID(int=draw.getrandbits(128)).bytes for _ in some]
    if kind == "binary":
        return [draw.randbytes(draw.choice([0, 1, 3])) for _ in some]
    if kind == "none":
        return [None]
    words = WORDS + LINES if kind == "lines" else WORDS
    return draw.choices(words, k=12) + ["".join(draw.choices("abXYé😀 ", k=draw.randint(0, 20))) for _ in some]


def types_of(kind, values):
    """Returns the types in which Arrow can hold these values of a kind."""
    if kind == "integer":
        types = [getattr(pyarrow, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
        types.append(pyarrow.decimal128(25, 0))
    elif kind == "decimal":
        scale = -values[0].as_tuple().exponent
        types = [pyarrow.decimal128(30, scale), pyarrow.decimal128(38, scale), pyarrow.decimal256(38, scale), pyarrow.decimal256(60, scale)]
    elif kind in ("text", "lines"):
        text = pyarrow.string()
        types = [text, pyarrow.large_string(), pyarrow.string_view(), pyarrow.dictionary(pyarrow.int8(), text),
                 pyarrow.dictionary(pyarrow.int32(), text), pyarrow.dictionary(pyarrow.uint16(), pyarrow.large_string())]
    elif kind == "time":
        types = [pyarrow.time32("s"), pyarrow.time32("ms"), pyarrow.time64("us"), pyarrow.time64("ns")]
    elif kind in ("instant", "moment"):
        zones = ["UTC", "+02:00", "Asia/Tokyo", "America/New_York"] if kind == "instant" else [None]
        types = [pyarrow.timestamp(unit, zone) for unit in UNITS for zone in zones]
    else:
        types = {
            "boolean": [pyarrow.bool_()], "day": [pyarrow.date32()], "uuid": [pyarrow.uuid()], "none": [pyarrow.null()],
            "float": [pyarrow.float64(), pyarrow.float32(), pyarrow.float16()],
            "binary": [pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary_view()],
        }[kind]
    return [of for of in types if array_of(values, of) is not None]


def array_of(values, of):
    """Returns these values as a type, or None if it cannot hold them."""
    try:
        if hasattr(of, "unit"):
            counts = [None if value is None else divmod(value, UNITS["ns"] // UNITS[of.unit]) for value in values]
            if any(count and count[1] for count in counts):
                return None
            width = pyarrow.int32() if of.bit_width == 32 else pyarrow.int64()
            return pyarrow.array([count and count[0] for count in counts], width).cast(of)
        if pyarrow.types.is_dictionary(of):
            return array_of(values, of.value_type).dictionary_encode().cast(of)
        if of == pyarrow.uuid():
            return pyarrow.ExtensionArray.from_storage(of, pyarrow.array(values, pyarrow.binary(16)))
        if pyarrow.types.is_float16(of):
            # With so few digits that no other text is as short.
            values = [round(math.fmod(value, 100) * 64) / 64 if value and math.isfinite(value) else value for value in values]
        if pyarrow.types.is_floating(of):
            with numpy.errstate(over="ignore"):
                values = [None if value is None else of.to_pandas_dtype()(value) for value in values]
        return pyarrow.array(values, of)
    except (pyarrow.ArrowInvalid, OverflowError):
        return None


def text_of_time(count, per_second):
    """Returns a time of day as the table of types has it."""
    seconds, fraction = divmod(count, per_second)
    fraction = f".{fraction:0{len(str(per_second)) - 1}}".rstrip("0").rstrip(".") if fraction else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


def text_of_float(number):
    """Returns the shortest text of a number that reads back as the same."""
    if not numpy.isfinite(number):
        return str(number).replace("nan", "NaN")
    if number and not number.dtype.type(1e-4) <= abs(number) < number.dtype.type(1e16):
        mantissa, exponent = numpy.format_float_scientific(number, trim="-").split("e")
        return f"{mantissa}e{int(exponent)}"
    return numpy.format_float_positional(number, trim="0")


def texts(array):
    """Returns the text of each value as the table of types has it: bytes, or None where there is no value."""
    if isinstance(array, pyarrow.ChunkedArray):
        return [text for chunk in array.chunks for text in texts(chunk)]
    of = array.type
    if pyarrow.types.is_dictionary(of):
        return texts(array.cast(of.value_type))
    if hasattr(of, "unit"):
        per_second = UNITS[of.unit]
        counts = array.cast(pyarrow.int32() if of.bit_width == 32 else pyarrow.int64()).to_pylist()

        def text(count):
            if pyarrow.types.is_time(of):
                return text_of_time(count, per_second)
            days, count = divmod(count, 86400 * per_second)
            day = EPOCH.date() + datetime.timedelta(days)
            return f"{day.isoformat()}T{text_of_time(count, per_second)}{'Z' if of.tz else ''}"
    elif of == pyarrow.uuid():
        counts, text = array.storage.to_pylist(), lambda value: str(uuid.UUID(bytes=value))
    else:
        counts = array.to_pylist()

        def text(value):
            if pyarrow.types.is_floating(of):
                return text_of_float(numpy.float64(value) if of == pyarrow.float64() else numpy.float32(value))
            if pyarrow.types.is_decimal(of):
                return f"{value:f}"
            return str(value).lower() if isinstance(value, bool) else str(value)
    return [None if one is None else one if isinstance(one, bytes) and of != pyarrow.uuid() else text(one).encode() for one in counts]


# The files.


def written(frame, path, draw):
    """Writes a frame as one of the writers of its format does. Returns options for veilset to read it, and the delimiter."""
    suffix, names = path.suffix, frame.column_names
    writers = {".csv": ["pandas", "pyarrow", "duckdb"], ".parquet": ["pandas", "pyarrow", "duckdb"],
               ".arrow": ["pandas", "pyarrow", "stream"], ".jsonl": ["pandas", "json", "duckdb"]}[suffix]
    if any(pyarrow.types.is_decimal256(of) or pyarrow.types.is_float16(of) for of in frame.schema.types):
        writers = [writer for writer in writers if writer != "duckdb"]
    fine = any(getattr(of, "unit", None) == "ns" for of in frame.schema.types)
    writer, delimiter = draw.choice(writers), draw.choice(",;\t|")
    told = {"delimiter": "tab" if delimiter == "\t" else delimiter} if suffix == ".csv" and draw.random() < 0.5 else {}
    if writer == "duckdb":
        if suffix == ".jsonl":
            # It writes infinity as a word that is not JSON.
            frame = as_text(frame, pyarrow.types.is_floating)
        codec = draw.choice(["snappy", "zstd", "gzip", "uncompressed", "lz4_raw", "brotli"])
        how = {".csv": f"format csv, header, delimiter '{delimiter}'{draw.choice(['', ', force_quote *'])}",
               ".parquet": f"format parquet, compression {codec}", ".jsonl": "format json"}[suffix]
        duckdb.connect().from_arrow(frame).query("frame", f"copy frame to '{path}' ({how})")
    elif writer == "pandas":
        if suffix == ".jsonl":
            frame = as_text(frame, lambda of: not (pyarrow.types.is_integer(of) or pyarrow.types.is_boolean(of) or of == pyarrow.float64()
                                                   or pyarrow.types.is_timestamp(of)))
        # With the types of Arrow, or with those of NumPy and Python, which have no finer times than microseconds.
        if draw.random() < 0.5 or fine:
            # It cannot write views as CSV.
            plain = {pyarrow.string_view(): pyarrow.large_string(), pyarrow.binary_view(): pyarrow.large_binary()}
            frame = frame.cast(pyarrow.schema([field.with_type(plain.get(field.type, field.type)) for field in frame.schema]))
            data = frame.to_pandas(types_mapper=pandas.ArrowDtype)
        else:
            data = frame.to_pandas(integer_object_nulls=True, ignore_metadata=True)
        if suffix == ".csv":
            # Its line ends decide whether a cell with a bare CR gets quotes.
            data.to_csv(path, index=False, sep=delimiter, **draw.choice([{"lineterminator": "\r\n"}, {"quoting": csv.QUOTE_ALL}]))
        elif suffix == ".jsonl":
            data.to_json(path, orient="records", lines=True, date_format="iso", date_unit="ns", default_handler=str,
                         force_ascii=draw.random() < 0.5)
        elif suffix == ".parquet":
            data.to_parquet(path, index=False)
        else:
            data.to_feather(path, compression=draw.choice(["lz4", "zstd", "uncompressed"]))
    elif suffix == ".jsonl":
        frame = as_text(frame, lambda of: not (pyarrow.types.is_integer(of) or pyarrow.types.is_boolean(of)))
        cells, ascii = frame.to_pydict().values(), draw.random() < 0.5
        # A missing value may also be a missing name, where an earlier row has it.
        rows = [dict(zip(names, row)) for row in zip(*cells)]
        rows[1:] = ({name: cell for name, cell in row.items() if cell is not None or draw.random() < 0.5} for row in rows[1:])
        path.write_text("".join(json.dumps(row, ensure_ascii=ascii) + "\n" for row in rows), "utf-8", newline="\n")
    elif suffix == ".csv":
        # In the texts that the values have as keys.
        options = pyarrow.csv.WriteOptions(delimiter=delimiter, batch_size=draw.choice([1, 1024]))
        pyarrow.csv.write_csv(as_text(frame, lambda of: of != pyarrow.string()), path, options)
    elif suffix == ".parquet":
        pyarrow.parquet.write_table(
            frame, path, version="2.6" if fine else draw.choice(["1.0", "2.4", "2.6"]), use_dictionary=draw.random() < 0.5,
            compression=draw.choice(["snappy", "zstd", "gzip", "none", "lz4", "brotli"]), row_group_size=draw.choice([1, 5, 1000]),
            data_page_version=draw.choice(["1.0", "2.0"]), store_schema=draw.random() < 0.5)
    else:
        start = pyarrow.ipc.new_stream if writer == "stream" else pyarrow.ipc.new_file
        compression = draw.choice(["lz4", "zstd", None])
        with start(str(path), frame.schema, options=pyarrow.ipc.IpcWriteOptions(compression=compression)) as out:
            out.write_table(frame, max_chunksize=draw.choice([1, 7, 1000]))
    return told, delimiter


def as_text(frame, which):
    """Returns a frame with the columns of some types as the texts of their values."""
    for at, field in enumerate(frame.schema):
        if which(field.type):
            cells = [text and text.decode(errors="replace") for text in texts(frame.column(at))]
            frame = frame.set_column(at, field.name, pyarrow.array(cells, pyarrow.string()))
    return frame


def read(path, delimiter=","):
    """Reads a file with pyarrow, or with Python if its cells are text; they are read as bytes."""
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path)
    if path.suffix == ".arrow":
        start = pyarrow.ipc.open_file if path.read_bytes()[:6] == b"ARROW1" else pyarrow.ipc.open_stream
        return start(str(path)).read_all()
    if path.suffix == ".csv":
        text = io.StringIO(path.read_bytes().decode("latin-1"), newline="")
        names, *rows = csv.reader(text, delimiter=delimiter, strict=True)
        names = [name.encode("latin-1").decode() for name in names]
        rows = [dict(zip(names, (cell.encode("latin-1") for cell in row), strict=True)) for row in rows if row]
    else:
        words = {True: b"true", False: b"false", None: None}
        rows = [{name: cell.encode() if isinstance(cell, str) else words[cell] for name, cell in row.items()} for row in json_lines(path)]
        names = list(dict.fromkeys(name for row in rows for name in row))
    return pyarrow.table([pyarrow.array([row.get(name) for row in rows], pyarrow.binary()) for name in names], names)


def json_lines(path):
    """Reads JSON lines. Numbers stay as they are written."""
    lines = path.read_text("utf-8").split("\n")
    return [json.loads(line, parse_int=Number, parse_float=Number) for line in lines if line]


class Number(str):
    """A number in JSON, as it is written."""


def same_type(of, came, suffix, to, encoding):
    """Returns whether a column that a file has as one type comes back as the other."""
    if suffix in TEXT:
        of = pyarrow.string() if encoding == "utf8" else pyarrow.binary()
    if suffix == ".arrow" and to != ".parquet":
        # An Arrow file has the values of a dictionary.
        return came == (of.value_type if to and pyarrow.types.is_dictionary(of) else of)
    return parquet_type(of) == parquet_type(came)


def parquet_type(of):
    """Returns the type that Parquet has for values of a type: it knows neither widths of offsets, nor zones, nor seconds."""
    if pyarrow.types.is_dictionary(of):
        return parquet_type(of.value_type)
    if of in (pyarrow.large_string(), pyarrow.string_view()):
        return pyarrow.string()
    if of in (pyarrow.large_binary(), pyarrow.binary_view()):
        return pyarrow.binary()
    if pyarrow.types.is_timestamp(of):
        return pyarrow.timestamp("ms" if of.unit == "s" else of.unit, of.tz and "UTC")
    if of == pyarrow.time32("s"):
        return pyarrow.time32("ms")
    return pyarrow.decimal128(of.precision, of.scale) if pyarrow.types.is_decimal256(of) and of.precision <= 38 else of


# The references.


def joined_by_pandas(ours, theirs, sent, skip, every):
    """Returns our rows whose keys theirs has, and of these rows the columns that are sent; all cells are texts.

    Rows with an empty key are skipped if `skip`. Of rows with the same key the first counts; of ours all do if `every`.
    """
    sides = []
    for side in (ours, theirs):
        rows = pandas.DataFrame({name: pandas.Series(texts(side.table.column(name)), dtype=object) for name in side.table.column_names})
        on = [f"key {at}" for at in range(len(side.keys))]
        rows.columns = [f"cell {name}" for name in rows.columns]
        for name, key in zip(on, side.keys):
            rows[name] = rows[f"cell {key}"].map(lambda cell: cell or b"")
        if skip:
            rows = rows[(rows[on] != b"").all(axis=1)]
        sides.append(rows if every and side is ours else rows.drop_duplicates(on))
    theirs = sides[1][on + [f"cell {name}" for name in sent]].rename(columns={f"cell {name}": f"sent {name}" for name in sent})
    rows = sides[0].merge(theirs, on=on).drop(columns=on)
    columns = {name: [None if cell is None or cell != cell else cell for cell in rows[name]] for name in rows.columns}
    return pyarrow.table([pyarrow.array(cells, pyarrow.binary()) for cells in columns.values()], ours.names(sent))


def joined_by_duckdb(ours, theirs, sent, skip, every):
    """Returns the same. DuckDB reads the files and makes the texts of keys; cells are values."""
    connection = duckdb.connect(config={"threads": 1})
    sides = []
    for side in (ours, theirs):
        source = f"(from {in_duckdb(connection, side)})"
        read = connection.sql(f"from {source}")
        types = {name: str(of) for name, of in zip(read.columns, read.types)}
        made = [f"coalesce({text_in_duckdb(key, types[key])}, ''::blob) as __key_{at}" for at, key in enumerate(side.keys)]
        if side is theirs:
            made += [f"{text_in_duckdb(name, types[name])} as __sent_{at}" for at, name in enumerate(sent)]
        on = [f"__key_{at}" for at in range(len(side.keys))]
        where = " and ".join(f"{key} <> ''::blob" for key in on) if skip else "true"
        first = "" if every and side is ours else f"qualify row_number() over (partition by {', '.join(on)} order by __row) = 1"
        sides.append(f"(select * from (select *, row_number() over () as __row, {', '.join(made)} from {source}) where {where} {first})")
    chosen = [f"ours.{quoted(name)}" for name in ours.table.column_names] + [f"theirs.__sent_{at}" for at in range(len(sent))]
    both = f"{sides[0]} ours join {sides[1]} theirs using ({', '.join(on)})"
    rows = connection.sql(f"select {', '.join(chosen)} from {both} order by ours.__row")
    return rows.to_arrow_table().rename_columns(ours.names(sent))


def in_duckdb(connection, side):
    """Returns what DuckDB reads a file with."""
    columns = "{" + ", ".join(f"{quoted(name, chr(39))}: 'varchar'" for name in side.table.column_names) + "}"
    if side.suffix == ".parquet":
        return f"read_parquet('{side.path}')"
    if side.suffix == ".jsonl":
        return f"read_json('{side.path}', format='newline_delimited', columns={columns})"
    if side.suffix == ".csv" and side.encoding == "utf8":
        how = f"header=true, delim='{side.delimiter}', quote='\"', escape='\"'"
        return f"read_csv('{side.path}', auto_detect=false, {how}, columns={columns})"
    # Its scan of Arrow lacks two types, and its CSV is UTF-8.
    table = side.table
    for at, field in enumerate(table.schema):
        of = field.type
        if pyarrow.types.is_decimal256(of):
            of = pyarrow.decimal128(38, of.scale) if of.precision <= 38 else pyarrow.string()
        table = table.set_column(at, field.name, table.column(at).cast(pyarrow.float32() if of == pyarrow.float16() else of))
    connection.register(f"file_{side.path.stem}", table)
    return f"file_{side.path.stem}"


def text_in_duckdb(name, of):
    """Returns the expression for the text of the values of a column."""
    column = quoted(name)
    if of == "BLOB":
        return column
    if of.endswith("WITH TIME ZONE"):
        column = f"replace(cast(timezone('UTC', {column}) as varchar), ' ', 'T') || 'Z'"
    elif of.startswith("TIMESTAMP"):
        column = f"replace(cast({column} as varchar), ' ', 'T')"
    elif of.startswith("DECIMAL"):
        # It omits the zero before the point if the type has fractional digits only.
        column = f"regexp_replace(cast({column} as varchar), '^(-?)\\.', '\\10.')"
    return f"encode(cast({column} as varchar))"


def is_lossy(side, name):
    """Returns whether DuckDB has other values or texts than those in a file: it has instants to the microsecond, and decimals of at
    most 38 digits, and writes numbers of JSON anew."""
    of = side.table.schema.field(name).type
    return ((pyarrow.types.is_timestamp(of) and of.tz and of.unit == "ns") or (pyarrow.types.is_decimal(of) and of.precision > 38)
            or (side.suffix == ".jsonl" and not side.may_be_key(name)))


def quoted(name, quote='"'):
    return quote + name.replace(quote, 2 * quote) + quote


# The test.


class Side:
    """A frame in a file."""

    def __init__(self, draw, encoding, number, keys, pools, folder):
        self.encoding = encoding
        self.suffix = draw.choice([".csv", ".parquet", ".arrow", ".jsonl"])
        self.path = folder / f"{number}{self.suffix}"
        # JSON lines of no rows have no columns.
        rows = draw.choice([int(self.suffix == ".jsonl"), 1, 2, 10, 40, 70])
        columns = [(kind, pool, draw.choice([0, 0.1])) for kind, pool in zip(keys, pools)]
        for kind in draw.choices(kinds_of(encoding) + ["float", "moment", "none"], k=draw.randint(1, 4)):
            columns.append((kind, values_of(kind, draw), draw.choice([0, 0.3])))
        arrays = []
        for kind, pool, missing in columns:
            values = [None if draw.random() < missing else draw.choice(pool) for _ in range(rows)]
            array = array_of(values, draw.choice(types_of(kind, pool)))
            # Another frame may have the same values as text.
            plain = kind != "binary" and draw.random() < 0.3
            arrays.append(pyarrow.array([text and text.decode() for text in texts(array)], pyarrow.string()) if plain else array)
        names = draw.sample(NAMES, len(arrays))
        self.keys = names[:len(keys)]
        order = draw.sample(range(len(arrays)), len(arrays))
        frame = pyarrow.table([arrays[at] for at in order], [names[at] for at in order])
        self.options, self.delimiter = written(frame, self.path, draw)
        self.table = read(self.path, self.delimiter)

    def names(self, sent):
        """Returns the names of the columns of a result."""
        return self.table.column_names + [f"sent {name}" for name in sent]

    def has_text(self, name):
        """Returns whether the values of a column have a text."""
        of = self.table.schema.field(name).type
        if self.suffix in TEXT:
            return True
        binary = [pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary_view()]
        return self.encoding == "bytes" or not (of in binary or pyarrow.types.is_fixed_size_binary(of))

    def may_be_key(self, name):
        """Returns whether the table of types lets a column be a key."""
        if self.suffix == ".jsonl":
            numbers = [cell for cell in (row.get(name) for row in json_lines(self.path)) if isinstance(cell, Number)]
            return all(re.fullmatch("0|-?[1-9][0-9]*", number) for number in numbers)
        of = self.table.schema.field(name).type
        return self.has_text(name) and not pyarrow.types.is_floating(of) and (not pyarrow.types.is_timestamp(of) or of.tz is not None)


def cells(table, empty):
    """Returns the columns of a table as texts. `empty` tells by the name of a column whether an empty text and no value are the same."""
    return {name: [text or (b"" if empty(name) else text) for text in texts(table.column(name))] for name in table.column_names}


@pytest.mark.parametrize("number", range(DRAWS))
def test_an_intersection_of_random_frames_is_their_join(pair, tmp_path, number):
    draw = random.Random(f"{SEED} {number}")
    encoding = draw.choice(["utf8"] * 5 + ["bytes"])
    keys = draw.choices(kinds_of(encoding), k=draw.choice([1, 1, 1, 2]))
    pools = [values_of(kind, draw) for kind in keys]
    ours, theirs = (Side(draw, encoding, number, keys, pools, tmp_path) for number in range(2))
    print(f"VEILSET_TEST_SEED={SEED}", *((side.path, side.keys, side.table.schema) for side in (ours, theirs)))
    skip, every, to = draw.random() < 0.7, draw.random() < 0.3, draw.choice([None, ".csv", ".parquet", ".arrow"])
    for side in (ours, theirs):
        side.options |= {"key": side.keys, "empty_keys": "skip" if skip else "keep", "encoding": encoding}
        if side.suffix == ".csv":
            side.options["multiline_keys"] = True
        refused = [key for key in side.keys if not side.may_be_key(key)]
        if refused:
            with pytest.raises(veilset.InputError, match="cannot be a key|is binary") as raised:
                veilset.intersect(side.path, **{**pair.options(0, "127.0.0.1:1"), **side.options})
            assert raised.value.column in refused
            return

    without = [name for name in ours.table.column_names if not ours.has_text(name)]
    to = ".arrow" if without and to == ".csv" else to
    sent = [name for name in theirs.table.column_names if name not in theirs.keys and theirs.has_text(name) and draw.random() < 0.3]
    if every:
        ours.options["duplicates"] = "all"
    if sent:
        ours.options["receive_columns"] = {name: f"sent {name}" for name in sent}
        theirs.options["send_columns"] = sent
    out = tmp_path / f"out{to}"
    # CSV called so has no tabs, unless they were asked for.
    delimiter = "," if ours.suffix != ".csv" or (ours.delimiter == "\t" and "delimiter" not in ours.options) else ours.delimiter
    if to:
        ours.options["output"] = out
    with warnings.catch_warnings():
        # They tell of what is odd in cells.
        warnings.simplefilter("ignore")
        receiver, _ = pair.both("intersect", (ours.path, ours.options), (theirs.path, theirs.options), {"max_row": 8192} if sent else None)
    result = read(out, delimiter) if to else pyarrow.table(receiver.frame)

    # What has no text is not read from Parquet.
    names = [name for name in ours.names(sent) if ours.suffix != ".parquet" or name not in without]
    assert result.column_names == names
    for name in names if to != ".csv" else []:
        suffix, of = (ours.suffix, ours.table.schema.field(name).type) if name in ours.table.column_names else (".csv", None)
        assert same_type(of, result.schema.field(name).type, suffix, to, encoding), name

    def empty(name):
        return ".csv" in (ours.suffix, to) or name not in ours.table.column_names

    found = cells(result, empty)
    joined = cells(joined_by_pandas(ours, theirs, sent, skip, every), empty)
    assert found == {name: joined[name] for name in names}
    if any(is_lossy(side, key) for side in (ours, theirs) for key in side.keys):
        return
    joined = cells(joined_by_duckdb(ours, theirs, sent, skip, every), empty)
    lossy = [name for name in ours.table.column_names if is_lossy(ours, name)]
    # The text of a floating-point number is another one in DuckDB.
    floating = [field.name for field in theirs.table.schema if pyarrow.types.is_floating(field.type)]
    lossy += [f"sent {name}" for name in sent if is_lossy(theirs, name) or name in floating]
    for name in names:
        # In a join it may take one zero for the other.
        same = zip(found[name], joined[name], strict=True)
        assert name in lossy or all(one == other or {one, other} == {b"0.0", b"-0.0"} for one, other in same), name
