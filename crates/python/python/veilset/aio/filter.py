"""The functions of :mod:`veilset.filter` as coroutines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._help import with_options
from .._run import NO_DATA
from ..filter import Info
from . import _make

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .. import _options


@with_options("filter build")
async def build(data: Any, **options: Unpack[_options.Build]) -> Path:
    """As :func:`veilset.filter.build`."""
    await _make("filter build", data, options)
    return Path(options["output"])


@with_options("filter update")
async def update(filter: str | os.PathLike[str], data: Any, **options: Unpack[_options.Update]) -> int:
    """As :func:`veilset.filter.update`."""
    inserted: int = (await _make("filter update", data, {"filter": filter, **options}))["inserted"]
    return inserted


@with_options("filter info")
async def info(filter: str | os.PathLike[str], **options: Unpack[_options.Own]) -> Info:
    """As :func:`veilset.filter.info`."""
    return Info(**await _make("filter info", NO_DATA, {"filter": filter, **options}))


@with_options("filter export")
async def export(filter: str | os.PathLike[str], **options: Unpack[_options.Export]) -> Path:
    """As :func:`veilset.filter.export`."""
    await _make("filter export", NO_DATA, {"filter": filter, **options})
    return Path(options["output"])


__all__ = ["build", "export", "info", "update"]
