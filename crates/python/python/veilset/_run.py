"""Runs: options to the native part, and its outcome back."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from . import _native
from ._frames import NAME, Source, looked_at, source
from ._people import Identity, PeerBook, Policy

#: What the program prints beside its result is logged here.
LOG = logging.getLogger("veilset")
#: How often Python looks whether it was interrupted, in seconds.
TICK = 0.1

Progress = Callable[["Doing"], None]


class Doing:
    """What a run is doing: ``what``, in which ``stage`` of ``stages`` (0 before the run), and how much of it is ``done`` of
    a ``total`` (0 if that is not known), in ``unit`` (``items`` or ``bytes``)."""

    __slots__ = ("what", "stage", "stages", "done", "total", "unit")

    def __init__(self, what: str, stage: int, stages: int, done: int, total: int, unit: str) -> None:
        self.what, self.stage, self.stages = what, stage, stages
        self.done, self.total, self.unit = done, total, unit

    def __repr__(self) -> str:
        of = f" of {self.total}" if self.total else ""
        return f"<{self.what}: {self.done}{of} {self.unit}>"


class Result:
    """The outcome of a run.

    ``frame`` is the result in the form of the data that was given, if it has rows (an Arrow table if a file was given) and
    went to no file; ``report`` is what ``--report`` writes; ``learned`` says in sentences what each party learned. Of id,
    ``ids`` is the list of all identifiers, and of the sender of share, ``map`` says which share belongs to which row.
    """

    def __init__(self, native: dict[str, Any], of: Source) -> None:
        self.frame: Any = None if native["frame"] is None else of.back(native["frame"])
        self.ids: _native.Frame | None = native["ids"]
        self.map: Any = None if native["map"] is None else of.back(native["map"])
        self.report: dict[str, Any] = json.loads(native["report"])
        self._text: str = native["text"]

    @property
    def learned(self) -> list[str]:
        """What each party learned, in sentences."""
        return list(self.report["learned"])

    @property
    def matches(self) -> int | None:
        """The number of items in common, if we learned it."""
        value: int | None = self._number("matches")
        return value

    @property
    def sum(self) -> Decimal | None:
        """The sum, if we learned it."""
        value = self._number("sum")
        return None if value is None else Decimal(value)

    def _number(self, name: str) -> Any:
        return self.report["result"].get(name)

    def __repr__(self) -> str:
        return self._text


class Checked:
    """What both sides agreed on, and what the run would cost and show. ``str()`` is the text of ``veilset check``."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


class Started:
    """A run that goes on."""

    def __init__(self, operation: str, data: Any, options: Mapping[str, Any], check: bool = False) -> None:
        given = {name: value for name, value in options.items() if not (value is None and name != "audit_log")}
        progress = given.pop("progress", None)
        self._source = source(data, looked_at(given))
        words: dict[str, Any] = {"input": self._source.path or NAME}
        if self._source.path is None:
            words["format"] = "arrow"
        for name, value in given.items():
            words[name] = _word(name, value)
        self._show = _shown(progress)
        in_memory = "output" not in words
        self._run = _native.Run(operation, words, self._source.stream, in_memory=in_memory, check=check)

    def wait(self, seconds: float = TICK) -> bool:
        """Waits so long for the end, and shows what is going on. Returns whether it is over."""
        over = self._run.wait(seconds)
        for kind, text in self._run.said():
            if kind == "warning":
                warnings.warn(text, RuntimeWarning, stacklevel=4)
            else:
                LOG.info(text)
        if self._show is not None:
            self._show(Doing(*self._run.doing()), over)
        return over

    def cancel(self) -> None:
        """Asks the run to stop; the other party is told."""
        self._run.cancel()

    def wait_for_the_end(self) -> None:
        """Waits until it is over. An interrupt ends it in good order."""
        try:
            while not self.wait():
                pass
        except BaseException:
            self.cancel()
            # The other party is told first.
            while not self._run.wait(TICK):
                pass
            raise

    def over(self, seconds: float) -> bool:
        """Waits so long for the end, and shows nothing. Returns whether it is over."""
        return self._run.wait(seconds)

    def result(self) -> Result:
        """The outcome of a run that is over."""
        return Result(self._run.result(), self._source)

    def checked(self) -> Checked:
        """The outcome of a check that is over."""
        return Checked(self._run.result()["text"])


def run(operation: str, data: Any, options: Mapping[str, Any]) -> Result:
    """Runs an operation to its end."""
    started = Started(operation, data, options)
    started.wait_for_the_end()
    return started.result()


def check(operation: str, data: Any, options: Mapping[str, Any]) -> Checked:
    """Checks a run."""
    started = Started(operation, data, options, check=True)
    started.wait_for_the_end()
    return started.checked()


def _word(name: str, value: Any) -> Any:
    """The value of an option as the native part takes it."""
    if isinstance(value, (Identity, PeerBook, Policy)):
        return value.path
    if name == "audit_log" and value is None:
        return "none"
    if name in ("key", "send_columns", "receive_columns", "normalize") and isinstance(value, (str, os.PathLike)):
        return [os.fspath(value)]
    if isinstance(value, Mapping):
        return [f"{theirs}={ours}" for theirs, ours in value.items()]
    if isinstance(value, (tuple, list, set, frozenset)):
        return list(value)
    return value


def _shown(progress: Any) -> Callable[[Doing, bool], None] | None:
    """What shows the progress: a callable of the user's, or tqdm."""
    if progress is None or progress is False:
        return None
    if callable(progress):
        return lambda doing, over: progress(doing)
    from tqdm.auto import tqdm

    bars: list[Any] = []
    seen: list[tuple[str, int]] = [("", -1)]

    def show(doing: Doing, over: bool) -> None:
        if (doing.what, doing.stage) != seen[0]:
            for bar in bars:
                bar.close()
            step = f"step {doing.stage} of {doing.stages}, " if doing.stages > 1 else ""
            unit = "B" if doing.unit == "bytes" else " items"
            bars[:] = [tqdm(total=doing.total or None, desc=step + doing.what, unit=unit, unit_scale=True)]
            seen[0] = (doing.what, doing.stage)
        for bar in bars:
            bar.update(doing.done - bar.n)
            if over:
                bar.close()

    return show
