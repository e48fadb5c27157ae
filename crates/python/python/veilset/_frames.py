"""Frames of other libraries: the data that veilset needs from one, and the same kind of frame for the result.

No library is imported unless one of its frames is given.
"""

from __future__ import annotations

import datetime
import decimal
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from . import _native
from ._errors import InputError, make, usage

#: The name of a frame in messages.
NAME = "the frame"
#: The advice for rows that could not be obtained.
SEE = (
    "What its library says of that is not shown, because it may name a cell: read all of the rows without veilset to see it"
)
#: The column that identifies rows of a pandas frame in the result.
ROW = "__veilset_row"


class Source:
    """Data to read: a file or several, or a frame that is handed over as an Arrow stream. ``back`` converts a result into a
    frame of the same kind, and ``plain`` shows a result where that fails."""

    def __init__(
        self,
        path: str | list[str] | None,
        stream: Any,
        back: Callable[[Any], Any],
        plain: Callable[[Any], Any] = lambda frame: frame,
    ) -> None:
        self.path = path
        self.stream = stream
        self.back = back
        self.plain = plain


class Looked(NamedTuple):
    """The columns that veilset reads."""

    keys: Sequence[str]
    values: Sequence[str]
    sent: Sequence[str]

    def names(self) -> list[str]:
        """Returns the names of all columns, each once."""
        return list(dict.fromkeys([*self.keys, *self.values, *self.sent]))


def source(data: Any, columns: Looked, operation: str = "", to_file: bool = False) -> Source:
    """Returns the source for ``data``. ``columns`` are the columns that veilset reads, for ``operation`` or for work in
    advance; ``to_file`` tells whether the result goes to a file."""
    if is_path(data):
        path = os.fspath(data) if isinstance(data, (str, os.PathLike)) else [os.fspath(one) for one in data]
        return Source(path, None, lambda frame: frame)
    module = type(data).__module__.split(".")[0]
    name = type(data).__name__
    if module == "pandas" and name == "DataFrame":
        return _pandas(data, columns, operation == "union", to_file)
    if module == "polars" and name == "LazyFrame":
        inner = source(_collected(data), columns, operation, to_file)
        return Source(None, inner.stream, lambda frame: inner.back(frame).lazy())
    if module == "polars" and name == "DataFrame":
        return _polars(data)
    if module == "pyarrow":
        return _pyarrow(data)
    if module in ("duckdb", "_duckdb") and name == "DuckDBPyRelation":
        # This is not converted into a relation: that would be a query on a connection that may be closed before the rows are
        # read.
        return Source(None, data, lambda frame: frame)
    if hasattr(data, "__arrow_c_stream__") and name != "Series":
        return Source(None, data, lambda frame: frame)
    raise usage(
        f"a {module}.{name} cannot be read. Give a pandas, Polars or pyarrow frame, a DuckDB relation, an object with"
        " __arrow_c_stream__, the name of a file or folder, or a list of such names"
    )


def is_path(data: Any) -> bool:
    """Returns whether the data are the name of a file, or a list of such names."""
    if isinstance(data, (list, tuple)):
        return bool(data) and all(isinstance(one, (str, os.PathLike)) for one in data)
    return isinstance(data, (str, os.PathLike))


def names_of(data: Any) -> list[str] | None:
    """Returns the names of the columns of a frame, if they are available without reading it."""
    module, _, _ = type(data).__module__.partition(".")
    if module == "polars" and hasattr(data, "lazy"):
        return list(data.lazy().collect_schema().names())
    if isinstance(data, _native.Frame):
        return data.columns
    if module == "pyarrow" and hasattr(data, "schema"):
        return list(data.schema.names)
    return [str(name) for name in data.columns] if module in ("pandas", "duckdb", "_duckdb") and hasattr(data, "columns") else None


def _collected(data: Any) -> Any:
    import polars

    try:
        return data.collect()
    except polars.exceptions.PolarsError as e:
        kind = type(e).__name__
    # Polars' message may name a cell, so the exception is neither shown nor kept as the cause.
    raise _failed(f"{NAME}: the rows could not be obtained ({kind}). {SEE}")


def _polars(data: Any) -> Source:
    import polars

    def without_null(dtype: Any) -> Any:
        """Returns the type, with a type that can be handed over in place of Null, the type of columns without values."""
        if dtype == polars.Null:
            return polars.Boolean()
        if isinstance(dtype, polars.List):
            return polars.List(without_null(dtype.inner))
        if isinstance(dtype, polars.Array):
            return polars.Array(without_null(dtype.inner), dtype.size)
        if isinstance(dtype, polars.Struct):
            return polars.Struct({field.name: without_null(field.dtype) for field in dtype.fields})
        return dtype

    for name, dtype in data.schema.items():
        # Object columns would be handed over as addresses in memory.
        if dtype == polars.Object:
            raise _failed(
                f"{NAME}, column \"{name}\": it holds Python objects, which Arrow cannot hold. Give the column a type, or"
                " drop it",
                column=name,
            )
    plain = {name: without_null(dtype) for name, dtype in data.schema.items()}
    changed = [name for name, dtype in data.schema.items() if dtype != plain[name]]

    def back(frame: Any) -> Any:
        result = polars.DataFrame(frame)
        # A union may have put values into these columns.
        empty = {name: data.schema[name] for name in changed if result.schema.get(name) == plain[name]}
        return result.cast(empty)

    return Source(None, data.cast({name: plain[name] for name in changed}) if changed else data, back)


def _pyarrow(data: Any) -> Source:
    import pyarrow

    if isinstance(data, pyarrow.RecordBatch):
        data = pyarrow.Table.from_batches([data])
    if isinstance(data, pyarrow.RecordBatchReader):
        data = pyarrow.RecordBatchReader.from_batches(data.schema, _alike(data))
    if not isinstance(data, (pyarrow.Table, pyarrow.RecordBatchReader)):
        raise usage(f"a {type(data).__name__} cannot be read. Make it a pyarrow.Table")
    return Source(None, data, _table)


def _table(frame: Any) -> Any:
    """Converts like `pyarrow.table`, which would import pandas to check whether the argument is a pandas frame."""
    import pyarrow

    return pyarrow.RecordBatchReader.from_stream(frame).read_all()


def _alike(reader: Any) -> Iterator[Any]:
    """Yields the batches of a reader, which itself does not check that they have its schema. A reader can be read only once,
    and does not report a second attempt. The native part knows these two messages, and shows no others."""
    rows = 0
    for batch in reader:
        if not batch.schema.equals(reader.schema):
            raise ValueError("a batch has another schema than the first")
        rows += len(batch)
        yield batch
    if not rows:
        raise ValueError("the reader has no rows: it was read before, for instance by a check. If there are none, give a table")


def _pandas(data: Any, columns: Looked, union: bool, to_file: bool) -> Source:
    """Hands over only the columns that veilset reads, unless rows go to a file; the rows of the result are taken from the frame
    itself."""
    numpy, pyarrow = needed()
    labels = labels_of(data, union)
    row_column = unlike(ROW, labels)
    if to_file:
        arrays = [to_arrow(data.iloc[:, at], label, columns) for at, label in enumerate(labels)]
        return Source(None, pyarrow.table(arrays, names=labels), lambda frame: frame)
    names, arrays = handed(data, labels, columns)
    looked = columns.names()
    others = [at for at, label in enumerate(labels) if label not in looked]
    rows = pyarrow.array(numpy.arange(len(data)))
    # The other columns are named for messages, but not handed over.
    arrays += [pyarrow.nulls(len(data))] * len(others) + [rows]
    stream = pyarrow.table(arrays, names=[*names, *(labels[at] for at in others), row_column])
    handed_over = set(stream.column_names)
    types = {name: of.type for name, of in zip(names, arrays)}
    of_keys = {name: types[name] for name in columns.keys if name in types}

    def back(frame: Any) -> Any:
        table = _table(frame)
        if row_column not in table.column_names:
            return keys_of(data, labels, of_keys, table) if union else _unrowed(data, labels, types, table)
        positions = table.column(row_column)
        ours = len(positions) - positions.null_count
        result = data.iloc[positions.slice(0, ours).to_numpy()]
        if union:
            # The rows of a union that are new to us come last.
            result = longer(result, labels, of_keys, table.slice(ours))
        return with_added(result, table, [name for name in table.column_names if name not in handed_over])

    def plain(frame: Any) -> Any:
        """Returns the columns that were handed over, with the positions of our rows, from 0, as the column "row"."""
        table = _table(frame)
        there = set(table.column_names)
        table = table.drop_columns([labels[at] for at in others if labels[at] in there])
        shown = unlike("row", table.column_names)
        return table.rename_columns([shown if name == row_column else name for name in table.column_names])

    return Source(None, stream, back, plain)


def needed() -> tuple[Any, Any]:
    """Returns the modules that hand over pandas frames: numpy and pyarrow."""
    try:
        import numpy
        import pyarrow
    except ImportError as e:
        raise usage("pandas hands its columns over through pyarrow, which is missing. Install veilset[pandas]") from e
    return numpy, pyarrow


def labels_of(data: Any, union: bool) -> list[str]:
    """Returns the names of the columns of a pandas frame. A label need not be text, but an option is."""
    labels = [str(label) for label in data.columns]
    if union:
        _told_apart(labels)
    return labels


def handed(data: Any, labels: Sequence[str], columns: Looked) -> tuple[list[str], list[Any]]:
    """Returns the columns of a pandas frame that veilset reads: their names, and their values for Arrow."""
    # Missing and repeated columns are reported by the run.
    places = [(name, at) for name in columns.names() for at, label in enumerate(labels) if label == name]
    return [name for name, _ in places], [to_arrow(data.iloc[:, at], name, columns) for name, at in places]


def longer(ours: Any, labels: Sequence[str], of_keys: Mapping[str, Any], new: Any) -> Any:
    """Returns a pandas frame of our rows, followed by the other side's new keys from an Arrow table. ``of_keys`` has the Arrow
    types of our key columns."""
    dtypes = {name: dtype_in_union(ours.iloc[:, at].dtype, *_key(name, of_keys, new)) for at, name in enumerate(labels)}
    mine, theirs = in_union(ours, labels, dtypes), new_rows(ours, labels, dtypes, of_keys, new)
    return mine if not len(theirs) else _together([mine, theirs], list(dtypes.values()))


def _together(frames: Sequence[Any], dtypes: Sequence[Any]) -> Any:
    """Concatenates frames with the same columns, column by column, since pandas would inspect objects and empty columns."""
    import pandas

    columns = [
        pandas.concat([frame.iloc[:, at] for frame in frames], ignore_index=True).astype(dtype)
        for at, dtype in enumerate(dtypes)
    ]
    result = pandas.concat(columns, axis=1)
    result.columns = frames[0].columns
    return result


def _key(name: str, of_keys: Mapping[str, Any], new: Any) -> tuple[bool, bool]:
    """Returns whether a column is a key, and whether one of the new keys is not a value of its type."""
    return name in of_keys, name in of_keys and not _alike_types(new.column(name).type, of_keys[name])


def dtype_in_union(dtype: Any, key: bool, as_text: bool) -> Any:
    """Returns the pandas dtype of a column in a union. For a key column, ``as_text`` tells whether one of the new keys is not a
    value of its type: the column then holds our values unchanged, and texts."""
    import pandas

    if as_text:
        return pandas.api.types.pandas_dtype(object)
    if key and isinstance(dtype, pandas.CategoricalDtype):
        # A key of the other side is not one of our categories.
        dtype = dtype.categories.dtype
    return nullable(dtype)


def in_union(ours: Any, labels: Sequence[str], dtypes: Mapping[str, Any]) -> Any:
    """Returns our rows of a union, with these dtypes."""
    import pandas

    columns = []
    for at, name in enumerate(labels):
        series = ours.iloc[:, at].reset_index(drop=True)
        if isinstance(series.dtype, pandas.SparseDtype):
            series = series.sparse.to_dense()
        columns.append(series if series.dtype == dtypes[name] else series.astype(dtypes[name]))
    result = pandas.concat(columns, axis=1) if columns else ours.reset_index(drop=True)
    result.columns = ours.columns
    return result


def new_rows(
    ours: Any, labels: Sequence[str], dtypes: Mapping[str, Any], of_keys: Mapping[str, Any], new: Any
) -> Any:
    """Returns the other side's new keys, in an Arrow table, as rows of a pandas frame with the columns of ``ours``."""
    import pandas

    nothing = in_union(ours.iloc[:0], labels, dtypes)
    columns = [
        _values(new.column(name), of_keys[name], dtypes[name]) if name in of_keys
        else nothing.iloc[:, at].reindex(range(len(new)))
        for at, name in enumerate(labels)
    ]
    result = pandas.concat(columns, axis=1) if columns else nothing
    result.columns = ours.columns
    return result


def with_added(result: Any, table: Any, added: Sequence[str]) -> Any:
    """Returns a pandas frame with these columns of an Arrow table added, which come from the other side."""
    if added:
        result = result.copy()
    for name in added:
        values = table.column(name).to_pandas()
        values.index = result.index
        result[name] = values
    return result


def keys_of(ours: Any, labels: Sequence[str], of_keys: Mapping[str, Any], table: Any) -> Any:
    """Returns a pandas frame of an Arrow table that has only keys, in the dtypes of a union with this frame."""
    names = table.column_names
    ours = ours.iloc[:, [labels.index(name) for name in names]]
    dtypes = {name: dtype_in_union(ours.iloc[:, at].dtype, *_key(name, of_keys, table)) for at, name in enumerate(names)}
    return new_rows(ours, names, dtypes, of_keys, table)


def _unrowed(ours: Any, labels: Sequence[str], types: Mapping[str, Any], table: Any) -> Any:
    """Returns a pandas frame of an Arrow table without positions of our rows, such as a map of shares: our columns keep their
    dtypes."""
    import pandas

    columns = {}
    for name, values in zip(table.column_names, table.columns):
        own = name in types and _alike_types(values.type, types[name])
        dtype = ours.iloc[:, labels.index(name)].dtype if own else None
        columns[name] = values.to_pandas() if dtype is None else _values(values, types[name], dtype)
    return pandas.DataFrame(columns)


def _told_apart(labels: Sequence[str]) -> None:
    """Refuses columns with the same name, before anything is sent: a union identifies columns by their names."""
    before: set[str] = set()
    for label in labels:
        if label in before:
            raise _failed(
                f"{NAME}, column \"{label}\": there are two columns of this name, which a union could not tell apart. Rename one,"
                " or drop it",
                column=label,
            )
        before.add(label)


def unlike(name: str, others: Iterable[str]) -> str:
    """Returns this name, or a variant that is not among the others."""
    taken = set(others)
    while name in taken:
        name += "_"
    return name


def nullable(dtype: Any) -> Any:
    """Returns the pandas dtype that holds the values of this one, and rows without a value."""
    import pandas

    if isinstance(dtype, pandas.SparseDtype):
        # Rows without a value would get the fill value.
        return nullable(dtype.subtype)
    if isinstance(dtype, pandas.IntervalDtype) and dtype.subtype.kind in "iu":
        # An interval without a value would turn the bounds of all intervals into floats.
        return pandas.api.types.pandas_dtype(object)
    if isinstance(dtype, pandas.api.extensions.ExtensionDtype):
        return dtype
    names = {"i": f"Int{8 * dtype.itemsize}", "u": f"UInt{8 * dtype.itemsize}", "b": "boolean"}
    return pandas.api.types.pandas_dtype(names.get(dtype.kind, dtype))


def _alike_types(theirs: Any, ours: Any) -> bool:
    """Returns whether keys of this Arrow type are values of ours."""
    import pyarrow

    if pyarrow.types.is_dictionary(ours):
        ours = ours.value_type
    texts = (pyarrow.types.is_string, pyarrow.types.is_large_string, pyarrow.types.is_string_view)
    return bool(theirs == ours or all(any(is_text(of) for is_text in texts) for of in (theirs, ours)))


def _values(column: Any, own_type: Any, dtype: Any) -> Any:
    """Returns keys as values of this dtype, which corresponds to our Arrow type. If they are not values of that type, they are
    texts, and the dtype is object."""
    import pandas

    if dtype == object:
        return pandas.Series(column.to_pylist(), dtype=object)
    assert _alike_types(column.type, own_type)
    if hasattr(dtype, "__from_arrow__"):
        return pandas.Series(dtype.__from_arrow__(column.combine_chunks()))
    return column.to_pandas().astype(dtype).reset_index(drop=True)


def to_arrow(series: Any, name: str, columns: Looked) -> Any:
    """Converts a pandas column for Arrow."""
    if name in (*columns.keys, *columns.values):
        return exact_column(series, name)
    return exact_column(series, name, _sent_text) if name in columns.sent else column(series, name)


def column(series: Any, name: str) -> Any:
    """Converts a pandas column for Arrow, which infers the type of Python objects."""
    import pyarrow

    try:
        return pyarrow.array(series, from_pandas=True)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        pass
    # Arrow's message may contain a value, and values are confidential.
    given = [(row, type(value).__name__) for row, value in enumerate(series, 1) if not _is_missing(value)]
    kinds = sorted({kind for _, kind in given})
    row = next((row for row, kind in given if kind != given[0][1]), None)
    raise _failed(
        f"{NAME}, {'' if row is None else f'row {row}, '}column \"{name}\": Arrow cannot hold the column's values"
        f" ({', '.join(kinds)}). Give the column one type, for instance with astype(\"string\")",
        column=name,
        row=row,
    )


def exact_column(series: Any, name: str, text_of: Callable[[Any], str | bytes] | None = None) -> Any:
    """Converts a pandas column for Arrow. Each Python object gets a text by its own type, regardless of the others: by default,
    the text of a key."""
    import pyarrow

    if series.dtype != object:
        return column(series, name)
    texts: list[Any] = []
    for row, value in enumerate(series, 1):
        try:
            texts.append(None if _is_missing(value) else (text_of or _text)(value))
            continue
        except _NoTextError as e:
            why = str(e)
        except Exception as e:
            # The message of another exception may contain the value.
            why = f"a value of the type {type(value).__name__} has no text ({type(e).__name__}). {_AS_TEXT}"
        # Raised outside the handler, so that the handled exception is not attached.
        raise _failed(f"{NAME}, row {row}, column \"{name}\": {why}", column=name, row=row)
    binary = any(isinstance(text, bytes) for text in texts)
    if binary:
        texts = [text.encode() if isinstance(text, str) else text for text in texts]
    return pyarrow.array(texts, pyarrow.large_binary() if binary else pyarrow.large_string())


_AS_TEXT = "Convert the column to text, the same way on both sides"


class _NoTextError(Exception):
    """The reason why a value has no text, without the value."""


def _text(value: Any) -> str | bytes:
    """Returns the text of a Python object, as a column of its type would have it; bytes are returned unchanged."""
    value = _of_python(value)
    if isinstance(value, str):
        try:
            value.encode()
            return value
        except UnicodeEncodeError:
            pass
        raise _NoTextError("the text (str) has half a character in it. Mend what made it")
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, uuid.UUID)):
        return str(value)
    if isinstance(value, decimal.Decimal) and value.is_finite():
        text = format(value, "f")
        return text if value else text.lstrip("-")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise _NoTextError(
                "timestamps without a time zone cannot be a key: they are different instants in different places. Convert the"
                " column to UTC timestamps or to text, the same way on both sides"
            )
        utc = _utc(value)
        fraction = utc.microsecond * 1000 + getattr(utc, "nanosecond", 0)
        return f"{utc.year:04}-{utc:%m-%dT%H:%M:%S}{_fraction(fraction)}Z"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.time) and value.tzinfo is None:
        return f"{value:%H:%M:%S}{_fraction(value.microsecond * 1000)}"
    if isinstance(value, float):
        raise _NoTextError(
            "floating-point numbers cannot be a key or be summed: what looks equal may differ in the last digit. Convert the"
            " column to integers, decimals or text, the same way on both sides"
        )
    raise _NoTextError(f"a value of the type {type(value).__name__} has no text of its own. {_AS_TEXT}")


def _utc(value: datetime.datetime) -> datetime.datetime:
    try:
        return value.astimezone(datetime.timezone.utc)
    except OverflowError:
        pass
    raise _NoTextError("the moment is out of range: its year, in UTC, is not from 1 to 9999. Correct it, or convert the column to text")


def _of_python(value: Any) -> Any:
    """Converts a numpy value into a Python one."""
    if not (hasattr(value, "dtype") and hasattr(value, "item")):
        return value
    import pandas

    # A numpy timestamp would become a number.
    return pandas.Timestamp(value) if value.dtype.kind == "M" else value.item()


def _sent_text(value: Any) -> str | bytes:
    """Returns the text of a Python object that is sent, including types that cannot be keys."""
    plain = _of_python(value)
    if isinstance(plain, float):
        # As in a column of floating-point numbers: 1e16, and 1e-5. Numpy's narrower types have shorter texts.
        mantissa, exponent, power = str(value).partition("e")
        return f"{mantissa}e{int(power)}" if exponent else mantissa
    value = plain
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        fraction = value.microsecond * 1000 + getattr(value, "nanosecond", 0)
        return f"{value.year:04}-{value:%m-%dT%H:%M:%S}{_fraction(fraction)}"
    return _text(value)


def _fraction(nanoseconds: int) -> str:
    return f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""


def _is_missing(value: Any) -> bool:
    import pandas

    missing = pandas.isna(value)
    return isinstance(missing, bool) and missing


def _failed(message: str, **fields: Any) -> InputError:
    error = make("input", message, {"exit_code": 3, "file": NAME, **fields})
    assert isinstance(error, InputError)
    return error


def looked_at(given: Mapping[str, Any]) -> Looked:
    """Returns the columns named in the given options."""
    values = [] if given.get("values") is None else [str(given["values"])]
    return Looked(given.get("key", []), values, given.get("send_columns", []))
