"""Frames of other libraries: what veilset needs of one, and the same kind of frame from the result.

No library is imported unless one of its frames is given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ._errors import InputError, make

#: The name of a frame in messages.
NAME = "the frame"
#: The column by which rows of a pandas frame are found again.
ROW = "__veilset_row"


class Source:
    """Data to read: a file or several, or a frame that is handed over as an Arrow stream."""

    def __init__(self, path: str | list[str] | None, stream: Any, back: Callable[[Any], Any]) -> None:
        self.path = path
        self.stream = stream
        self.back = back


def source(data: Any, columns: Sequence[str], operation: str = "") -> Source:
    """What is read for ``data``. ``columns`` are the ones that veilset looks at, for an operation or for something else."""
    if isinstance(data, (str, os.PathLike)):
        return Source(os.fspath(data), None, lambda frame: frame)
    if isinstance(data, (list, tuple)) and data and all(isinstance(one, (str, os.PathLike)) for one in data):
        return Source([os.fspath(one) for one in data], None, lambda frame: frame)
    module = type(data).__module__.split(".")[0]
    name = type(data).__name__
    if module == "pandas" and name == "DataFrame":
        return _pandas(data, columns, operation == "union")
    if module == "polars" and name == "LazyFrame":
        inner = source(_collected(data), columns, operation)
        return Source(None, inner.stream, lambda frame: inner.back(frame).lazy())
    if module == "polars" and name == "DataFrame":
        return _polars(data)
    if module == "pyarrow":
        return _pyarrow(data)
    if module in ("duckdb", "_duckdb") and name == "DuckDBPyRelation":
        return Source(None, data, _as_relation)
    if hasattr(data, "__arrow_c_stream__") and name != "Series":
        return Source(None, data, lambda frame: frame)
    raise make(
        "usage",
        f"a {module}.{name} cannot be read. Give a pandas, Polars or pyarrow frame, a DuckDB relation, an object with"
        " __arrow_c_stream__, the name of a file or folder, or a list of such names",
        {"exit_code": 2},
    )


def _collected(data: Any) -> Any:
    import polars

    try:
        return data.collect()
    except polars.exceptions.PolarsError as e:
        raise _failed(f"{NAME}: the rows could not be had: {e}. Look at what makes them, and run again") from e


def _polars(data: Any) -> Source:
    import polars

    def without_null(dtype: Any) -> Any:
        """The type, with one that may be handed over in place of the one of columns without values."""
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
        # They would be handed over as addresses in memory.
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
        # A union may have put values there.
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
        raise make("usage", f"a {type(data).__name__} cannot be read. Make it a pyarrow.Table", {"exit_code": 2})
    return Source(None, data, _table)


def _table(frame: Any) -> Any:
    """As `pyarrow.table` makes it, which would import pandas to see whether it is one."""
    import pyarrow

    return pyarrow.RecordBatchReader.from_stream(frame).read_all()


def _alike(reader: Any) -> Iterator[Any]:
    """The batches of a reader, which does not look whether they have its schema. It can be read once, and does not say so."""
    rows = 0
    for batch in reader:
        if not batch.schema.equals(reader.schema):
            raise ValueError("a batch has another schema than the first")
        rows += len(batch)
        yield batch
    if not rows:
        raise ValueError("the reader has no rows: it was read before, for instance by a check. If there are none, give a table")


def _as_relation(frame: Any) -> Any:
    import duckdb

    try:
        return duckdb.from_arrow(frame)
    except (duckdb.Error, ImportError):
        # An older DuckDB takes what pyarrow makes of it.
        return duckdb.from_arrow(_table(frame))


def _pandas(data: Any, columns: Sequence[str], union: bool) -> Source:
    """Only the columns that veilset looks at are handed over; the result takes its rows from the frame itself."""
    try:
        import numpy
        import pyarrow
    except ImportError as e:
        message = "pandas hands its columns over through pyarrow, which is missing. Install veilset[pandas]"
        raise make("usage", message, {"exit_code": 2}) from e

    # A label need not be a text; an option is.
    labels = [str(label) for label in data.columns]
    if union:
        _told_apart(labels)
    row_column = unlike(ROW, labels)
    arrays, names = [], []
    for name in dict.fromkeys(columns):
        # What is missing or there twice, the run says.
        for at in [at for at, label in enumerate(labels) if label == name]:
            arrays.append(_column(data.iloc[:, at], name))
            names.append(name)
    others = [label for label in labels if label not in names]
    rows = pyarrow.array(numpy.arange(len(data)))
    # The other columns are named for messages, and not handed over.
    arrays += [pyarrow.nulls(len(data))] * len(others) + [rows]
    stream = pyarrow.table(arrays, names=[*names, *others, row_column])

    def back(frame: Any) -> Any:
        import pandas

        table = _table(frame)
        if row_column not in table.column_names:
            return table.to_pandas()
        positions = table.column(row_column)
        ours = len(positions) - positions.null_count
        result = data.iloc[positions.slice(0, ours).to_numpy()]
        added = [name for name in table.column_names if name not in stream.column_names]
        if union:
            # The rows of a union that are new to us come last.
            new = table.slice(ours)
            columns = [
                _longer(result.iloc[:, at], len(new), (new.column(name), stream.schema.field(name).type) if name in names else None)
                for at, name in enumerate(labels)
            ]
            result = pandas.concat(columns, axis=1) if columns else result
            result.columns = data.columns
        elif added:
            result = result.copy()
        for name in added:
            values = table.column(name).to_pandas()
            values.index = result.index
            result[name] = values
        return result

    return Source(None, stream, back)


def _told_apart(labels: Sequence[str]) -> None:
    """Refuses columns of one name, before anything is sent: a union finds them again by their names."""
    for at, label in enumerate(labels):
        if label in labels[:at]:
            raise _failed(
                f"{NAME}, column \"{label}\": there are two columns of this name, which a union could not tell apart. Rename one,"
                " or drop it",
                column=label,
            )


def unlike(name: str, others: Iterable[str]) -> str:
    """This name, or one made of it that is none of the others."""
    taken = set(others)
    while name in taken:
        name += "_"
    return name


def nullable(dtype: Any) -> Any:
    """The pandas dtype that holds the values of this one, and rows without a value."""
    import pandas

    if isinstance(dtype, pandas.SparseDtype):
        # Rows without a value would be what fills the gaps.
        return nullable(dtype.subtype)
    if isinstance(dtype, pandas.IntervalDtype) and dtype.subtype.kind in "iu":
        # An interval without a value would make floats of the bounds of all.
        return pandas.api.types.pandas_dtype(object)
    if isinstance(dtype, pandas.api.extensions.ExtensionDtype):
        return dtype
    names = {"i": f"Int{8 * dtype.itemsize}", "u": f"UInt{8 * dtype.itemsize}", "b": "boolean"}
    return pandas.api.types.pandas_dtype(names.get(dtype.kind, dtype))


def _longer(ours: Any, more: int, new: tuple[Any, Any] | None) -> Any:
    """A column of ours, and of so many rows more: values of its own Arrow type, or texts, or none at all."""
    import pandas

    ours = ours.reset_index(drop=True)
    if new is not None and isinstance(ours.dtype, pandas.CategoricalDtype):
        # A key of the other side is no category of ours.
        ours = ours.astype(ours.dtype.categories.dtype)
    dtype = nullable(ours.dtype)
    if isinstance(ours.dtype, pandas.SparseDtype):
        ours = ours.sparse.to_dense()
    if dtype != ours.dtype:
        ours = ours.astype(dtype)
    if new is None or not more:
        return ours.reindex(range(len(ours) + more)) if more else ours
    values, own_type = new
    theirs = _values(values, own_type, dtype)
    if theirs is None:
        # A text that is no value of the dtype: ours stay what they are, in a column of anything.
        return pandas.concat([ours.astype(object), pandas.Series(values.to_pylist(), dtype=object)], ignore_index=True)
    return pandas.concat([ours, theirs], ignore_index=True)


def _values(column: Any, own_type: Any, dtype: Any) -> Any:
    """Keys of the other side as values of this dtype, which has this Arrow type; ``None`` if it is none of theirs."""
    import pandas
    import pyarrow

    if pyarrow.types.is_dictionary(own_type):
        own_type = own_type.value_type
    texts = (pyarrow.types.is_string, pyarrow.types.is_large_string, pyarrow.types.is_string_view)
    if column.type != own_type and not (any(is_text(column.type) for is_text in texts) and any(is_text(own_type) for is_text in texts)):
        return None
    if dtype == object:
        return pandas.Series(column.to_pylist(), dtype=object)
    if hasattr(dtype, "__from_arrow__"):
        return pandas.Series(dtype.__from_arrow__(column.combine_chunks()))
    return column.to_pandas().astype(dtype)


def _column(series: Any, name: str) -> Any:
    import pyarrow

    try:
        return pyarrow.array(series, from_pandas=True)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        pass
    # What Arrow says may have a value in it, and values are confidential.
    given = [(row, type(value).__name__) for row, value in enumerate(series, 1) if not _is_missing(value)]
    kinds = sorted({kind for _, kind in given})
    row = next((row for row, kind in given if kind != given[0][1]), None)
    raise _failed(
        f"{NAME}, {'' if row is None else f'row {row}, '}column \"{name}\": Arrow cannot hold the column's values"
        f" ({', '.join(kinds)}). Give the column one type, for instance with astype(\"string\")",
        column=name,
        row=row,
    )


def _is_missing(value: Any) -> bool:
    import pandas

    missing = pandas.isna(value)
    return isinstance(missing, bool) and missing


def _failed(message: str, **fields: Any) -> InputError:
    error = make("input", message, {"exit_code": 3, "file": NAME, **fields})
    assert isinstance(error, InputError)
    return error


def looked_at(options: dict[str, Any]) -> list[str]:
    """The columns that the options name."""
    names: list[str] = []
    for option in ("key", "values", "send_columns"):
        value = options.get(option)
        if isinstance(value, Iterable) and not isinstance(value, str):
            names.extend(str(one) for one in value)
        elif value is not None:
            names.append(str(value))
    return names

