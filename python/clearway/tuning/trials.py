"""Settings become runs, and runs become numbers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from clearway.errors import ScenarioError
from clearway.files.whole import replace
from clearway.results.read import write_table
from clearway.results.result import Result
from clearway.results.statistics import slowdowns
from clearway.running.run import _cores
from clearway.scenarios.forecast import Forecast
from clearway.sweeps.driver import Board, drive
from clearway.sweeps.local import Local
from clearway.sweeps.points import Simulation
from clearway.sweeps.store import Store
from clearway.sweeps.watch import Watch
from clearway.tuning.knobs import Base, TuneError

Setting = Mapping[str, float]
"""A value for each knob, by its key."""


class Trial(Simulation):
    """A run whose row has what a search compares."""

    def row(self, folder: Path) -> dict[str, Any]:
        """Losses, pauses and how the flows did."""
        result = Result.load(folder)
        counted = dict(zip(result.counters["counter"], result.counters["value"], strict=True))
        end_s = float(result.info["end_ps"]) / 1e12
        return {
            "lossless_losses": int(counted.get("lossless_losses", 0)),
            "dropped": int(result.dropped),
            "pauses": int(counted.get("pfc_pauses", 0)),
            "paused_ms": float(np.sum(result.links["paused_ps"].astype(float))) / 1e9,
            "storms": int(counted.get("pfc_storms", 0)),
            "p99": float(slowdowns(result)["all"]["p99"]),
            "mean": float(slowdowns(result)["all"]["mean"]),
            "goodput_gbps": result.goodput() / 1e9,
            "unfinished": int(result.unfinished),
            "end_ms": end_s * 1e3,
            "wall_s": float(result.info["wall_seconds"]),
            "digest": result.digest or "",
        }


@dataclass(frozen=True)
class Score:
    """How a setting did, over seeds and scenarios."""

    setting: Setting
    losses: int
    """Packets of lossless classes that found no room, in all runs."""
    paused_ms: float
    """For how long links were paused, all links together: the mean over runs."""
    p99: float
    """The 99th percentile of slowdowns: the mean over runs."""
    goodput_gbps: float
    unfinished: float
    reserved_bytes: float
    """Memory of all lossless groups and ports that nothing else may use."""
    refused: str = ""
    """Why it could not run; empty if it could."""
    runs: int = 0


@dataclass
class Trials:
    """The runs of a search: made by processes of this machine, kept in a folder, each made once."""

    bases: Sequence[Base]
    seeds: Sequence[int]
    folder: Path
    workers: int | None = None
    progress: bool | None = None
    tell: Callable[[str], object] | None = None
    most: int = 0
    """How many settings the search tries at most."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    known: dict[tuple[float, ...], Score] = field(default_factory=dict)

    def __enter__(self) -> Trials:
        self._stack = contextlib.ExitStack()
        self._store = Store(self.folder / "store").open()
        self._stack.callback(self._store.close)
        self._executor = self._stack.enter_context(contextlib.closing(Local(self.workers, 10**6)))
        self._began, self._fresh = time.monotonic(), 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self.write()

    @property
    def keys(self) -> list[str]:
        """The keys of the knobs."""
        return [knob.key for knob in self.bases[0].knobs]

    @property
    def lanes(self) -> int:
        """How many runs are made at a time."""
        return max(1, self.workers or _cores())

    @property
    def each(self) -> int:
        """Runs of one setting."""
        return len(self.bases) * len(self.seeds)

    def forecast(self) -> Forecast:
        """The cost of one run of the most expensive scenario."""
        found = [base.scenario.forecast(probe_seconds=0.3) for base in self.bases]
        return max(found, key=lambda one: one.cpu_seconds or 0.0)

    def scores(self, settings: Sequence[Setting], step: str) -> list[Score]:
        """How settings did. Those that are not known yet are run, all of them at once."""
        keys = self.keys
        fresh = {tuple(setting[key] for key in keys): setting for setting in settings}
        fresh = {values: setting for values, setting in fresh.items() if values not in self.known}
        tasks: dict[str, Trial] = {}
        names: dict[str, str] = {}
        wanted: list[tuple[tuple[float, ...], str, int, str]] = []
        refused: dict[tuple[float, ...], str] = {}
        for values, setting in fresh.items():
            for base in self.bases:
                for seed in self.seeds:
                    try:
                        scenario = base.with_(setting, seed)
                        scenario.check()
                    except ScenarioError as error:
                        refused[values] = f"{error.key}: {error.message}"
                        break
                    task = Trial.of(scenario)
                    tasks[task.key] = task
                    names[task.key] = f"{step}: {_words(base, setting)}, seed {seed}"
                    wanted.append((values, base.scenario.name, seed, task.key))
        self._run(tasks, names)
        rows = {key: task.row(self._store.place(key)) for key, task in tasks.items() if self._store.has(key)}
        for values, setting in fresh.items():
            mine = [(name, seed, key) for of, name, seed, key in wanted if of == values]
            failed = next((self._store.failure(key) for *_, key in mine if key not in rows), None)
            if values in refused or failed is not None:
                why = refused.get(values) or (failed.error if failed else "")
                self.known[values] = _refused(setting, why)
                continue
            self.known[values] = self._score(setting, [rows[key] for *_, key in mine])
            for name, seed, key in mine:
                self.rows.append({"step": step, "scenario": name, "seed": seed, **setting, **rows[key], "run": key})
        self.write()
        if fresh and self.tell is not None:
            self.tell(f"{len(self.known)} of at most {self.most} settings{self._left()}: {step}")
        return [self.known[tuple(setting[key] for key in keys)] for setting in settings]

    def table(self) -> pa.Table:
        """One row a run: step, scenario, seed, the value of each knob, what came of it, and the run's key."""
        return pa.Table.from_pylist(self.rows)

    def write(self) -> None:
        """Writes the table of all runs."""
        if self.rows:
            replace(self.folder / "trials.parquet", lambda path: write_table(self.table(), path))

    def _run(self, tasks: Mapping[str, Trial], names: Mapping[str, str]) -> None:
        if not tasks:
            return
        self._fresh += sum(not self._store.has(key) for key in tasks)
        board = Board(names)
        with Watch(board, None if self.progress is None else self.progress) as watch:
            drive(tasks, board, self._store, self._executor, False, watch)

    def _score(self, setting: Setting, rows: Sequence[Mapping[str, Any]]) -> Score:
        def mean(name: str) -> float:
            return float(np.mean([row[name] for row in rows]))

        return Score(
            setting,
            losses=sum(row["lossless_losses"] for row in rows),
            paused_ms=mean("paused_ms"),
            p99=mean("p99"),
            goodput_gbps=mean("goodput_gbps"),
            unfinished=mean("unfinished"),
            reserved_bytes=max(base.reserved_bytes(setting) for base in self.bases),
            runs=len(rows),
        )

    def _left(self) -> str:
        """The time that the rest takes at most, by that of the runs so far."""
        if not self._fresh:
            return ""
        each = (time.monotonic() - self._began) / self._fresh * self.each
        seconds = each * max(0, self.most - len(self.known))
        return f" (at most {seconds:.0f} s left)" if seconds < 100 else f" (at most {seconds / 60:.0f} min left)"


def _refused(setting: Setting, why: str) -> Score:
    nan = float("nan")
    return Score(setting, 0, nan, nan, nan, nan, nan, refused=why)


def _words(base: Base, setting: Setting) -> str:
    return ", ".join(f"{knob.kind} {knob.shown(setting[knob.key])}" for knob in base.knobs)


def check_same(bases: Sequence[Base]) -> None:
    """Several scenarios are tuned together if they have the same tables."""
    for base in bases[1:]:
        if [knob.key for knob in base.knobs] != [knob.key for knob in bases[0].knobs]:
            raise TuneError(
                f"{base.scenario.name}: has other tables in flow_control.mmu than {bases[0].scenario.name}; scenarios "
                "that are tuned together have one switch"
            )
