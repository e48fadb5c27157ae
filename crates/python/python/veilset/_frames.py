"""Frames of other libraries: what veilset needs of one, and the same kind of frame from the result.

No library is imported unless one of its frames is given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ._errors import InputError, make

#: The name of a frame in messages.
NAME = "the frame"
#: The column by which rows of a pandas frame are found again.
ROW = "__veilset_row"


class Source:
    """Data to read: a file, or a frame that is handed over as an Arrow stream."""

    def __init__(self, path: str | None, stream: Any, back: Callable[[Any], Any]) -> None:
        self.path = path
        self.stream = stream
        self.back = back


def source(data: Any, columns: Sequence[str]) -> Source:
    """What is read for ``data``. ``columns`` are the ones that veilset looks at."""
    if isinstance(data, (str, os.PathLike)):
        return Source(os.fspath(data), None, lambda frame: frame)
    module = type(data).__module__.split(".")[0]
    name = type(data).__name__
    if module == "pandas" and name == "DataFrame":
        return _pandas(data, columns)
    if module == "polars" and name == "LazyFrame":
        inner = source(data.collect(), columns)
        return Source(None, inner.stream, lambda frame: inner.back(frame).lazy())
    if module == "polars" and name == "DataFrame":
        import polars

        return Source(None, data, lambda frame: polars.DataFrame(frame))
    if module == "pyarrow":
        return _pyarrow(data)
    if module in ("duckdb", "_duckdb") and name == "DuckDBPyRelation":
        return _duckdb(data)
    if hasattr(data, "__arrow_c_stream__"):
        return Source(None, data, lambda frame: frame)
    raise make(
        "usage",
        f"a {module}.{name} cannot be read. Give a pandas, Polars or pyarrow frame, a DuckDB relation, an object with"
        " __arrow_c_stream__, or the name of a file",
        {"exit_code": 2},
    )


def _pyarrow(data: Any) -> Source:
    import pyarrow

    if isinstance(data, pyarrow.RecordBatch):
        data = pyarrow.Table.from_batches([data])
    if not hasattr(data, "__arrow_c_stream__"):
        raise make("usage", f"a {type(data).__name__} cannot be read. Make it a pyarrow.Table", {"exit_code": 2})
    return Source(None, data, lambda frame: pyarrow.table(frame))


def _duckdb(data: Any) -> Source:
    import duckdb

    def back(frame: Any) -> Any:
        import pyarrow

        return duckdb.from_arrow(pyarrow.table(frame))

    try:
        stream = data if hasattr(data, "__arrow_c_stream__") else data.fetch_arrow_table()
    except duckdb.Error as e:
        raise _failed(f"the query failed: {e}") from e
    return Source(None, stream, back)


def _pandas(data: Any, columns: Sequence[str]) -> Source:
    """Only the columns that veilset looks at are handed over; the result takes its rows from the frame itself."""
    try:
        import pyarrow
    except ImportError as e:
        message = "pandas hands its columns over through pyarrow, which is missing. Install veilset[pandas]"
        raise make("usage", message, {"exit_code": 2}) from e

    arrays, names = [], []
    for name in dict.fromkeys(columns):
        found = [at for at, column in enumerate(data.columns) if column == name]
        # What is missing or there twice, the run says.
        for at in found:
            arrays.append(_column(data.iloc[:, at], name))
            names.append(name)
    others = [str(column) for column in data.columns if column not in names]
    rows = pyarrow.array(range(len(data)), type=pyarrow.int64())
    # The other columns are named for messages, and not handed over.
    arrays += [pyarrow.nulls(len(data))] * len(others) + [rows]
    stream = pyarrow.table(arrays, names=[*names, *others, ROW])

    def back(frame: Any) -> Any:
        import pandas

        table = pyarrow.table(frame)
        if ROW not in table.column_names:
            return table.to_pandas()
        positions = table.column(ROW)
        ours = len(positions) - positions.null_count
        result = data.iloc[positions.slice(0, ours).to_numpy()]
        added = [name for name in table.column_names if name not in stream.column_names]
        if ours < len(positions):
            # The rows of a union that are new to us come last.
            new = table.slice(ours).select([name for name in names])
            result = pandas.concat([result, new.to_pandas()], ignore_index=True)
            result = result[list(data.columns)]
        elif added:
            result = result.copy()
        for name in added:
            values = table.column(name).to_pandas()
            values.index = result.index
            result[name] = values
        return result

    return Source(None, stream, back)


def _column(series: Any, name: str) -> Any:
    import pyarrow

    try:
        return pyarrow.array(series, from_pandas=True)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError) as e:
        raise _failed(
            f"{NAME}, column \"{name}\": Arrow cannot hold its values together: {e}. Give the column one type, for"
            " instance with astype(\"string\")",
            column=name,
        ) from e


def _failed(message: str, **fields: Any) -> InputError:
    error = make("input", message, {"exit_code": 3, "file": NAME, **fields})
    assert isinstance(error, InputError)
    return error


def looked_at(options: dict[str, Any]) -> list[str]:
    """The columns that the options name."""
    names: list[str] = []
    for option in ("key", "values", "send_columns"):
        value = options.get(option)
        if isinstance(value, str):
            names.append(value)
        elif isinstance(value, Iterable):
            names.extend(str(one) for one in value)
    return names

