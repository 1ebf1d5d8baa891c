"""A sweep: its points, and how it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from clearway.errors import ScenarioError
from clearway.running.run import _cores
from clearway.scenarios.scenario import Scenarios, scenarios_of
from clearway.sweeps.axes import Axis, cross, short_names, too_many
from clearway.sweeps.cluster import Cluster, Launcher
from clearway.sweeps.driver import Board, Executor, drive
from clearway.sweeps.local import Local
from clearway.sweeps.points import Point, Task
from clearway.sweeps.result import SweepResult
from clearway.sweeps.store import Store
from clearway.sweeps.watch import Watch


class Sweep:
    """Points, each a run with labels, and where their results are kept.

    Results are kept in `store` by what makes them: what another sweep on the same store has run is not run again.
    `store` is a folder within `folder` if not given.

    >>> import clearway as cw
    >>> from tempfile import mkdtemp
    >>> tiny = cw.Scenario.load("examples/tiny.toml")
    >>> points = [cw.Point(tiny.with_({"traffic.0.pattern.stride.by": by}), {"stride": by}) for by in (1, 2)]
    >>> swept = cw.Sweep(points, mkdtemp()).run()
    >>> swept.table()[["stride", "status", "all mean"]].round(2)
              stride status  all mean
    run
    stride 1       1   done       1.0
    stride 2       2   done       1.0
    """

    def __init__(
        self,
        points: Iterable[Point],
        folder: str | Path,
        *,
        store: str | Path | None = None,
        name: str | None = None,
        launcher: Launcher | None = None,
    ) -> None:
        self.points = list(points)
        self.folder = Path(folder)
        self.store = Path(store) if store is not None else self.folder / "store"
        self.name = name if name is not None else self.folder.name
        names = [point.name for point in self.points]
        twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
        if twice is not None:
            raise ValueError(f"two points have the name {twice!r}; give them different labels")
        self.launcher = launcher
        """The cluster on which it runs by default; none for this machine."""
        self.located: Callable[[Point, ScenarioError], ScenarioError] = named

    @staticmethod
    def over(
        scenarios: Scenarios,
        vary: Mapping[str, Sequence[Any]],
        folder: str | Path,
        *,
        store: str | Path | None = None,
    ) -> Sweep:
        """All combinations of the scenarios and the values of the keys. `load` is that of every class, as in
        `Scenario.with_`; `level` is that of `run`.

        >>> import clearway as cw
        >>> tiny = cw.Scenario.load("examples/tiny.toml")
        >>> sweep = cw.Sweep.over(tiny, {"fabric.star.hosts": [4, 8], "seed": [1, 2]}, "out/hosts")
        >>> [point.name for point in sweep.points]
        ['hosts 4, seed 1', 'hosts 4, seed 2', 'hosts 8, seed 1', 'hosts 8, seed 2']
        """
        given = scenarios_of(scenarios)
        axes = [Axis.of(name, key, vary[key]) for key, name in short_names(vary).items()]
        bases = {scenario.name: scenario for scenario in given}
        if len(bases) < len(given):
            raise ValueError("two scenarios have the same name; give each a different one")
        crowded = too_many(len(bases), axes)
        if crowded:
            raise ValueError(crowded)
        return Sweep(cross(bases, axes), folder, store=store)

    @staticmethod
    def load(
        path: str | Path,
        folder: str | Path | None = None,
        *,
        store: str | Path | None = None,
        seeds: int | Sequence[int] | None = None,
    ) -> Sweep:
        """Reads a sweep from a file, TOML: see `docs/sweeps.md`.

        Its results go to `out/NAME` if `folder` is not given. `seeds`, a number of them from the scenario's own on or a
        list, take the place of those that the file varies.

        >>> import clearway as cw
        >>> len(cw.Sweep.load("examples/sweep.toml").points), len(cw.Sweep.load("examples/sweep.toml", seeds=5).points)
        (24, 60)
        """
        from clearway.sweeps.file import load

        return load(Path(path), folder, store, seeds)

    def check(self) -> None:
        """Checks every run without running it; raises `ScenarioError` for the first that cannot be run."""
        store = Store(self.store)

        def problem(point: Point) -> ScenarioError | None:
            try:
                if not store.has(point.key) or store.damage(point.key, point.task.check_whole):
                    point.check()
            except ScenarioError as error:
                return self.located(point, error)
            return None

        with ThreadPoolExecutor(_cores()) as pool:
            problems = [problem for problem in pool.map(problem, self.points) if problem is not None]
        if problems:
            first = problems[0]
            more = f" ({len(problems) - 1} more of {len(self.points)} runs can't be run)" if len(problems) > 1 else ""
            raise ScenarioError(first.file, first.line, first.key, first.message + more)

    def run(
        self,
        *,
        workers: int | None = None,
        dask: Any = None,
        cluster: bool = False,
        retry_failed: bool = False,
        progress: bool | None = None,
    ) -> SweepResult:
        """Checks every point, then runs those that the store does not have.

        On `workers` processes of this machine, as many as it has cores if not given; or on Dask: `dask` is the address
        of a scheduler (`"tcp://host:8786"`) or a `distributed.Client`. With `cluster` on the cluster that the sweep's
        file describes: its launcher starts programs and opens ports, so that the file alone starts none. A run that
        fails stops no other; it is run again only with `retry_failed`. After Ctrl-C the result is of what has ended.
        Several sweeps, on several machines, may share a store at one time. `progress`: True and False turn its lines on
        and off; by default a terminal shows a live table.
        """
        if cluster:
            if self.launcher is None or dask is not None or workers is not None:
                raise ValueError("cluster: needs a sweep whose file has [cluster], and neither workers nor dask")
            dask = self.launcher
        elif self.launcher is not None and dask is None and workers is None:
            raise ValueError(
                f"[cluster] of the sweep's file would start {self.launcher.name}, which runs programs and opens ports: "
                "say --cluster (in Python cluster=True) to start it, or --workers N to run on this machine"
            )
        self.check()
        tasks = {point.key: point.task for point in self.points}
        names = {point.key: point.name for point in reversed(self.points)}
        board = Board(names)
        interrupted = False
        with contextlib.ExitStack() as stack:
            driver = Store(self.store).open()
            stack.callback(driver.close)
            try:
                executor = stack.enter_context(contextlib.closing(self._executor(tasks, driver, workers, dask)))
                watch = stack.enter_context(Watch(board, progress))
                drive(tasks, board, driver, executor, retry_failed, watch)
            except KeyboardInterrupt:
                interrupted = True
                driver.log("interrupted")
        return SweepResult(self.points, self.store, self.folder, self.name, interrupted)

    def result(self) -> SweepResult:
        """The results so far; runs nothing."""
        return SweepResult(self.points, self.store, self.folder, self.name)

    def _executor(self, tasks: Mapping[str, Task], store: Store, workers: int | None, dask: Any) -> Executor:
        if dask is not None:
            return Cluster(dask)
        return Local(workers, sum(not store.has(key) for key in tasks))

    def __repr__(self) -> str:
        return f"Sweep({self.name!r}, {len(self.points)} points)"


def sweep(
    scenarios: Scenarios,
    vary: Mapping[str, Sequence[Any]],
    folder: str | Path,
    *,
    store: str | Path | None = None,
    workers: int | None = None,
    dask: Any = None,
    retry_failed: bool = False,
    progress: bool | None = None,
) -> SweepResult:
    """Runs each scenario with each value of each key: `Sweep.over(...).run(...)`."""
    swept = Sweep.over(scenarios, vary, folder, store=store)
    return swept.run(workers=workers, dask=dask, retry_failed=retry_failed, progress=progress)


def named(point: Point, error: ScenarioError) -> ScenarioError:
    """An error with the name of its point."""
    return ScenarioError(error.file, error.line, error.key, f"{error.message} (in the run {point.name!r})")
