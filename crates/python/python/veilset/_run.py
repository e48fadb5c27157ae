"""Runs: passes options to the native part, and converts its outcome."""

from __future__ import annotations

import atexit
import json
import logging
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from . import _native
from ._errors import Error, told, usage, warn
from ._frames import NAME, Source, is_path, looked_at, names_of, source
from ._given import ROWS, check_applies, given_of, worded

#: The logger for messages that the program would print in addition to its result.
LOG = logging.getLogger("veilset")
#: The interval, in seconds, at which Python checks for an interrupt.
TICK = 0.1

#: The placeholder for data, where only a file is read.
NO_DATA: Any = object()


@dataclass(frozen=True, slots=True)
class Doing:
    """The progress of a run: ``what``, in which ``stage`` of ``stages`` (0 before the run), and how much of it is ``done`` of a
    ``total`` (0 if that is not known), in ``unit`` (``items`` or ``bytes``). ``left`` is the number of seconds that the run
    will still take, if there is an estimate; None before the run."""

    what: str
    stage: int
    stages: int
    done: int
    total: int
    unit: str
    left: float | None = None

    def __repr__(self) -> str:
        of = f" of {self.total}" if self.total else ""
        return f"<{self.what}: {self.done}{of} {self.unit}>"


class Result:
    """The outcome of a run.

    ``frame`` is the result in the form of the data that was given, if it has rows and went to no file: for a file, a stream or
    a DuckDB relation, a :class:`veilset.Frame`; ``report`` is what ``report="FILE.json"`` writes; ``learned`` says in sentences
    what each party learned. For id, ``ids`` is the list of all identifiers, and for the sender of share, ``map`` says which
    share belongs to which row.
    """

    def __init__(self, native: dict[str, Any], of: Source, made: Any = None) -> None:
        self.frame: Any = _back(native["frame"], of) if made is None else made
        self.ids: _native.Frame | None = native["ids"]
        self.map: Any = _back(native["map"], of)
        self.report: dict[str, Any] = json.loads(native["report"])
        self._text: str = native["text"]
        # From here on, the files of the job are not needed.
        _delete(native["leftover"])

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


def _back(frame: _native.Frame | None, of: Source) -> Any:
    """Returns a frame of the same kind as the data. If none can be made, the result is not lost: warns, and returns it in
    another kind."""
    try:
        return None if frame is None else of.back(frame)
    except Exception as e:
        why = told(e)
    plain = of.plain(frame)
    columns = ", ".join(plain.columns if isinstance(plain, _native.Frame) else plain.column_names)
    warn(
        f"the result is a {type(plain).__module__.split('.')[0]}.{type(plain).__name__} with the columns {columns}, because the"
        f" kind of frame that was given cannot hold it ({why})"
    )
    return plain


def _delete(leftover: _native.Leftover | None) -> None:
    """Deletes the files that a job leaves."""
    try:
        if leftover is not None and (left := leftover.delete()):
            LOG.info(left)
    except Error as e:
        warn(f"the run is done, but {e}")


class Party(NamedTuple):
    """Another party of a run that was checked."""

    #: Our name for the party, if there is one.
    name: str | None
    #: The party's fingerprint, if it was authenticated.
    fingerprint: str | None
    #: The size of the party's set.
    items: int
    #: Whether the party's set is padded.
    padded: bool


@dataclass(frozen=True, repr=False)
class Checked:
    """The agreement of both sides, and what the run would cost and disclose. ``str()`` is all of it as text."""

    operation: str
    role: str
    protocol: str
    group: str
    #: The reason for this protocol, if it was picked among several that both sides allow.
    picked: str | None
    #: The hard problems that the protocol rests on, such as ``ddh``.
    rests_on: list[str]
    #: The size of our set.
    items: int
    #: Whether our set is padded.
    padded: bool
    #: The other parties.
    others: list[Party]
    #: What each party would learn, in sentences.
    learned: list[str]
    #: All agreed terms, by their names in the report.
    terms: dict[str, str]
    #: The number of bytes that our side would send.
    sent: int
    #: The number of bytes that our side would receive.
    received: int
    #: The number of messages each of which waits for the one before.
    rounds: int
    #: The peak memory on our side in bytes, in addition to the set.
    memory: int
    #: The seconds that our side would compute.
    seconds: float
    #: The seconds that the other side would compute, or the slowest of several.
    their_seconds: float
    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


class Started:
    """A run, or work in advance, that has started: ``start`` starts it with the options and the stream of ``data``."""

    def __init__(
        self,
        start: Callable[[dict[str, Any], Any], _native.Run],
        data: Any,
        options: Mapping[str, Any],
        operation: str = "",
    ) -> None:
        given = given_of(options, lambda: names_of(data))
        progress = given.pop("progress", None)
        words: dict[str, Any] = {}
        own = worded(given)
        self._source: Source | None = None
        check_applies(given, operation, data is not NO_DATA and not is_path(data))
        if data is not NO_DATA:
            to_file = "output" in given and operation in ROWS
            self._source = data if isinstance(data, Source) else source(data, looked_at(given), operation, to_file)
            words["input"] = self._source.path or NAME
            if self._source.path is None:
                words["format"] = "arrow"
        words.update(own)
        self._show = _shown(progress)
        self._run = start(words, self._source and self._source.stream)
        _going.add(self)

    def wait(self, seconds: float = TICK) -> bool:
        """Waits for the end, for at most this number of seconds, and shows the progress. Returns whether it is over."""
        over = self._run.wait(seconds)
        for kind, text in self._run.said():
            if kind == "warning":
                warn(text)
            else:
                LOG.info(text)
        if self._show is not None:
            self._show(Doing(*self._run.doing()), over)
        return over

    def stop(self) -> Callable[[], bool]:
        """Asks the run to stop, and notifies the others. Returns a function that waits a moment, shows nothing, and tells
        whether to continue waiting."""
        self._run.cancel()
        begun = time.monotonic()
        return lambda: not self._run.wait(TICK) and time.monotonic() - begun < self._run.patience()

    def is_ours(self) -> bool:
        """Returns whether the run belongs to this process, rather than to one of which this is a copy."""
        return self._run.is_ours()

    def wait_for_the_end(self) -> None:
        """Waits until it is over. An interrupt stops it in an orderly way."""
        try:
            while not self.wait():
                pass
        except BaseException:
            going = self.stop()
            while going():
                pass
            raise

    def outcome(self) -> dict[str, Any]:
        """Returns the outcome. To be called once."""
        return self._run.result()

    def result(self) -> Result:
        """Returns the result of a run that is over."""
        assert self._source is not None
        return Result(self.outcome(), self._source)

    def checked(self) -> Checked:
        """Returns the result of a check that is over."""
        outcome = self.outcome()
        return Checked(**{**outcome, "others": [Party(*other) for other in outcome["others"]]})


#: The runs that may still be in progress.
_going: weakref.WeakSet[Started] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Stops all runs when Python exits, since a run's thread must not use Python afterwards."""
    for going in [started.stop() for started in list(_going) if started.is_ours()]:
        while going():
            pass


def start(operation: str, data: Any, options: Mapping[str, Any], check: bool = False) -> Started:
    """Starts a run, or its check."""
    return Started(
        lambda words, stream: _native.Run(operation, words, stream, check=check), data, options, operation
    )


def start_making(command: str, data: Any, options: Mapping[str, Any]) -> Started:
    """Starts work in advance."""
    return Started(lambda words, stream: _native.Run.make(command, words, stream), data, options)


def run(operation: str, data: Any, options: Mapping[str, Any]) -> Result:
    """Runs an operation to its end."""
    started = start(operation, data, options)
    started.wait_for_the_end()
    return started.result()


def check(operation: str, data: Any, options: Mapping[str, Any]) -> Checked:
    """Checks a run."""
    started = start(operation, data, options, check=True)
    started.wait_for_the_end()
    return started.checked()


def make(command: str, data: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Does work in advance."""
    started = start_making(command, data, options)
    started.wait_for_the_end()
    return started.outcome()


def _shown(progress: Any) -> Callable[[Doing, bool], None] | None:
    """Returns the function that shows the progress: a callable of the user, or tqdm."""
    if progress is None or progress is False:
        return None
    if callable(progress):
        return lambda doing, over: _tell(progress, doing, over)
    try:
        from tqdm.auto import tqdm
    except ImportError as e:
        raise usage("progress=True shows bars by tqdm, which is missing. Install veilset[progress], or give a callable") from e

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


def _tell(progress: Callable[[Doing], None], doing: Doing, over: bool) -> None:
    """Calls a callable. Its exception stops the run; once the run is over, it is only warned about, so that the result is not
    lost."""
    try:
        progress(doing)
    except Exception as e:
        if not over:
            raise
        warn(f"the run is over, but its progress could not be told: {type(e).__name__}: {e}")
