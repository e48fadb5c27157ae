"""The operations as coroutines. A task that is cancelled ends its run in good order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ._run import TICK, Checked, Result, Started

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import _options


async def _over(operation: str, data: Any, options: Any, check: bool = False) -> Started:
    """A run that is over."""
    loop = asyncio.get_running_loop()
    started = await loop.run_in_executor(None, Started, operation, data, options, check)
    try:
        while not await loop.run_in_executor(None, started.wait, TICK):
            pass
    except BaseException:
        started.cancel()
        while not await asyncio.shield(loop.run_in_executor(None, started.over, TICK)):
            pass
        raise
    return started


async def _run(operation: str, data: Any, options: Any) -> Result:
    return (await _over(operation, data, options)).result()


async def intersect(data: Any, **options: Unpack[_options.Intersect]) -> Result:
    """As :func:`veilset.intersect`."""
    return await _run("intersect", data, options)


async def union(data: Any, **options: Unpack[_options.Union_]) -> Result:
    """As :func:`veilset.union`."""
    return await _run("union", data, options)


async def count(data: Any, **options: Unpack[_options.Count]) -> Result:
    """As :func:`veilset.count`."""
    return await _run("count", data, options)


async def sum(data: Any, **options: Unpack[_options.Sum]) -> Result:  # noqa: A001
    """As :func:`veilset.sum`."""
    return await _run("sum", data, options)


async def id(data: Any, **options: Unpack[_options.Id]) -> Result:  # noqa: A001
    """As :func:`veilset.id`."""
    return await _run("id", data, options)


async def share(data: Any, **options: Unpack[_options.Share]) -> Result:
    """As :func:`veilset.share`."""
    return await _run("share", data, options)


async def check(operation: str, data: Any, **options: Any) -> Checked:
    """As :func:`veilset.check`."""
    return (await _over(operation, data, options, check=True)).checked()


__all__ = ["check", "count", "id", "intersect", "share", "sum", "union"]
