"""The operations as coroutines. A task that is cancelled stops its run in an orderly way.

Progress is reported in a thread of the loop's executor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from .._help import with_options
from .._run import TICK, Checked, Result, Started, start, start_making

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .. import _options


async def _over(start: Callable[..., Started], *what: Any) -> Started:
    """Returns a run that is over."""
    loop = asyncio.get_running_loop()
    started = await loop.run_in_executor(None, start, *what)
    try:
        while not await loop.run_in_executor(None, started.wait, TICK):
            pass
    except BaseException:
        going = started.stop()
        while await asyncio.shield(loop.run_in_executor(None, going)):
            pass
        raise
    return started


async def _run(operation: str, data: Any, options: Any) -> Result:
    return (await _over(start, operation, data, options)).result()


async def _make(command: str, data: Any, options: Any) -> dict[str, Any]:
    return (await _over(start_making, command, data, options)).outcome()


@with_options("intersect")
async def intersect(data: Any, **options: Unpack[_options.Intersect]) -> Result:
    """As :func:`veilset.intersect`."""
    return await _run("intersect", data, options)


@with_options("union")
async def union(data: Any, **options: Unpack[_options.Union_]) -> Result:
    """As :func:`veilset.union`."""
    return await _run("union", data, options)


@with_options("count")
async def count(data: Any, **options: Unpack[_options.Count]) -> Result:
    """As :func:`veilset.count`."""
    return await _run("count", data, options)


@with_options("sum")
async def sum(data: Any, **options: Unpack[_options.Sum]) -> Result:  # noqa: A001
    """As :func:`veilset.sum`."""
    return await _run("sum", data, options)


@with_options("id")
async def id(data: Any, **options: Unpack[_options.Id]) -> Result:  # noqa: A001
    """As :func:`veilset.id`."""
    return await _run("id", data, options)


@with_options("share")
async def share(data: Any, **options: Unpack[_options.Share]) -> Result:
    """As :func:`veilset.share`."""
    return await _run("share", data, options)


@overload
async def check(operation: Literal["intersect"], data: Any, **options: Unpack[_options.Intersect]) -> Checked: ...
@overload
async def check(operation: Literal["union"], data: Any, **options: Unpack[_options.Union_]) -> Checked: ...
@overload
async def check(operation: Literal["count"], data: Any, **options: Unpack[_options.Count]) -> Checked: ...
@overload
async def check(operation: Literal["sum"], data: Any, **options: Unpack[_options.Sum]) -> Checked: ...
@overload
async def check(operation: Literal["id"], data: Any, **options: Unpack[_options.Id]) -> Checked: ...
@overload
async def check(operation: Literal["share"], data: Any, **options: Unpack[_options.Share]) -> Checked: ...
@with_options("intersect", "union", "count", "sum", "id", "share")
async def check(operation: str, data: Any, **options: Any) -> Checked:
    """As :func:`veilset.check`."""
    return (await _over(start, operation, data, options, True)).checked()


@with_options("prepare")
async def prepare(data: Any, **options: Unpack[_options.Prepare]) -> Path:
    """As :func:`veilset.prepare`."""
    await _make("prepare", data, options)
    return Path(options["output"])


# This needs the definitions above.
from . import filter as filter  # noqa: A004, E402

# Functions that would hide built-in ones are not exported: filter, id and sum.
__all__ = ["check", "count", "intersect", "prepare", "share", "union"]
