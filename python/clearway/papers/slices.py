"""The slice of a record: a second's worth of its runs, which `make test` runs again.

It begins with what the figure's own code asks for first, so that it differs when packets move that did not, when a
scenario or a key of it changes, and when the figure asks for another run. A run is cut at `measure.end`, where links
have carried `HOPS` packets. Since few flows have ended by then, most figures fail after some runs. So a run of each
scheme that is not yet among these follows, from its scenario's file and keys. Values computed without a run (theory,
fair rates) are compared as they are. How tables are made of runs is no part of a slice.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

import clearway as cw
from clearway.programs import outside

if TYPE_CHECKING:
    from clearway.papers._paper import Options, Paper

HOPS = 100_000
"""Packets over links at which a run is cut."""
SECONDS = 0.7
"""CPU time of a slice after which no further run becomes part of it."""
RUNS = 6
"""The most runs of a slice."""

HERE = Path(__file__).parent

T = TypeVar("T")
V = TypeVar("V")

LONGEST_US = 1_000_000
"""A run that carries less than `HOPS` packets is cut at about this time."""

Piece = dict[str, Any]
"""A part of a slice: `of`, the run's name; `end_us`, where the run is cut, None if it is whole; its `digest`; and
`file` and `sets`, its scenario, where the figure did not come to ask for it."""


_NONE: Mapping[str, cw.Scenario] = {}


class Enough(BaseException):
    """Ends a figure whose slice is complete. Not an error, so that no figure takes it for one."""


@dataclass
class Slice:
    """The pieces that a figure has asked for so far, and those of its record if it has a slice."""

    recorded: Sequence[Piece] | None = None
    pieces: list[Piece] = field(default_factory=list)
    wrong: str = ""
    """How it differs from the record; empty if it does not."""
    schemes: set[str] = field(default_factory=set)
    _seconds: float = 0.0
    _last: float = field(default_factory=time.process_time)

    def run(self, wanted: cw.Scenario) -> cw.Result:
        """A run of the figure, cut."""
        self.schemes.add(schemes(wanted))
        try:
            if self.recorded is None:
                end_us, result = _cut(wanted)
            else:
                end_us = self.recorded[len(self.pieces)]["end_us"]
                result = _until(wanted, end_us)
        except ValueError as error:
            self.wrong = f"{wanted.name}: {error}"
            raise Enough from None
        self.add(wanted.name, end_us, str(result.digest), float(result.info["cpu_seconds"]))
        return result

    def value(self, name: str, value: object) -> None:
        """A value that the figure computes without a run."""
        self.add(name, None, digest(value), time.process_time() - self._last)

    def add(self, name: str, end_us: int | None, found: str, seconds: float) -> None:
        """A piece with the time that it took, compared with the record's if there is one."""
        self._seconds += seconds
        self._last = time.process_time()
        piece = {"of": name, "end_us": end_us, "digest": found}
        at = len(self.pieces)
        self.pieces.append(piece)
        if self.recorded is None:
            full = len(self.pieces) == RUNS or self._seconds > SECONDS
        else:
            known = self.recorded[at]
            if name != known["of"]:
                self.wrong = f"the figure asks for {name!r}, and its record has {known['of']!r}"
            elif found != known["digest"]:
                self.wrong = f"{name}: digest {found}, and its record has {known['digest']}"
            full = bool(self.wrong) or len(self.pieces) == len(self.recorded)
        if full:
            raise Enough


_current: Slice | None = None


def current() -> Slice | None:
    """The slice that is being made, if one is; runs of figures then are parts of it."""
    return _current


def of_figure(
    of: Paper, figure: str, options: Options, recorded: Sequence[Piece] = (), asked: Mapping[str, cw.Scenario] = _NONE
) -> Slice:
    """The slice of a figure with these options: that of a record, compared piece by piece until one differs, or a new
    one, of whose runs `asked` has one for each scheme."""
    from clearway.papers._paper import Options

    global _current
    made = Slice([piece for piece in recorded if "file" not in piece] or None)
    scratch = TemporaryDirectory()  # for the traces that a figure writes
    of.use(replace(options, out=Path(scratch.name)))
    _current = made
    try:
        # The figure of runs that are cut is of no interest.
        with contextlib.suppress(Enough), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shown = of.figures[figure]()
            if not made.pieces:
                made.value("table", shown.table)
    except Exception:
        if not made.pieces:
            raise
    finally:
        _current = None
        of.use(Options())
        scratch.cleanup()
    if recorded:
        rest = [(piece, _scenario(piece)) for piece in recorded if "file" in piece]
    else:
        rest = [(_place(wanted), wanted) for name, wanted in asked.items() if name not in made.schemes]
    for place, wanted in rest:
        if place and not made.wrong:
            alone = Slice([place] if recorded else None)
            with contextlib.suppress(Enough):
                alone.run(wanted)
            made.pieces += [{**piece, **place} for piece in alone.pieces]
            made.wrong = alone.wrong
    return made


def schemes(wanted: cw.Scenario) -> str:
    """The transport, flow control and sharing of a scenario."""
    said = wanted.to_dict()
    of = [said.get(key, "none") for key in ("transport", "flow_control", "sharing")]
    return " ".join(one if isinstance(one, str) else next(iter(one)) for one in of)


def _place(wanted: cw.Scenario) -> Piece:
    """The scenario as a file of this package and the keys set over it; empty if it is of no file here, or of a trace
    that the figure has written."""
    _, name, _, sets, _ = outside.native(wanted._core, "a slice").parts()
    file = Path(name).resolve()
    lasts = file.is_relative_to(HERE) and not any('"/' in value for _, value in sets)
    return {"file": file.relative_to(HERE).as_posix(), "sets": sets} if lasts else {}


def _scenario(piece: Piece) -> cw.Scenario:
    return cw.Scenario.load(HERE / piece["file"]).with_text([(key, value) for key, value in piece["sets"]])


def mapped(function: Callable[[T], V], items: Iterable[T], at_once: Executor) -> list[V]:
    """The values of a function, computed by an executor. In a slice they are computed one after another, and each is
    a piece, unless runs are that it makes."""
    if (slice_ := _current) is None:
        with at_once as pool:
            return list(pool.map(function, items))
    values = []
    for item in items:
        before = len(slice_.pieces)
        values.append(function(item))
        if len(slice_.pieces) == before:
            slice_.value(str(item), values[-1])
    return values


def digest(value: object) -> str:
    """A digest of a value, to six decimals, without what depends on the machine: columns whose name speaks of CPU."""
    if isinstance(value, pd.DataFrame | pd.Series):
        kept = value[[name for name in list(value.keys()) if "CPU" not in str(name)]]
        value = json.loads(kept.to_json(orient="split", double_precision=6))
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()


def _until(wanted: cw.Scenario, end_us: int | None) -> cw.Result:
    if end_us is not None:
        measure = {key: value for key, value in wanted.to_dict()["measure"].items() if key != "drain"}
        wanted = wanted.with_({"measure": {**measure, "end": f"{end_us}us"}})
    return cw.run(wanted, threads=1, progress=False)


def _cut(wanted: cw.Scenario) -> tuple[int | None, cw.Result]:
    """Where a run is cut, and the run until there. It is whole if it ends before it has carried enough."""
    end_us, shorter = 4, None
    while True:
        result = _until(wanted, end_us)
        if not result.unfinished:
            if shorter is not None and result.info["packet_hops"] > 4 * HOPS:
                return end_us // 2, shorter
            return None, _until(wanted, None)
        if result.info["packet_hops"] >= HOPS or end_us > LONGEST_US:
            return end_us, result
        end_us, shorter = 2 * end_us, result
