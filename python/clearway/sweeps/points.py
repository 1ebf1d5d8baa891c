"""The points of a sweep, and the tasks that they are."""

from __future__ import annotations

import hashlib
import json
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from clearway import _core
from clearway.comparisons.comparison import _row
from clearway.comparisons.sustain import kept_up
from clearway.defaults import Level
from clearway.errors import ScenarioError
from clearway.programs import outside
from clearway.results.read import check_whole
from clearway.results.result import Result
from clearway.running.run import Progress, run
from clearway.scenarios.scenario import OF_A_RANK, Scenario

_Simulation = TypeVar("_Simulation", bound="Simulation")
Label = str | int | float | bool
Told = Callable[[float, str], object]
"""The progress of a run: the share that is done, and a text."""


class Task(ABC):
    """The work of a point. Its class must be importable on the machine that runs it, and the task must be picklable.

    The result must depend on `content` alone: results are stored by a digest of it and not computed again.
    """

    @property
    @abstractmethod
    def content(self) -> bytes:
        """Everything that determines the result."""

    @abstractmethod
    def run(self, folder: Path, threads: int, told: Told) -> None:
        """Writes the result as `folder`. Calls `told` regularly, which raises once the result is no longer wanted."""

    @abstractmethod
    def row(self, folder: Path) -> dict[str, Any]:
        """The columns of a table for the result in `folder`."""

    def check(self) -> None:  # noqa: B027, most have nothing to check
        """Raises errors that are known before anything runs."""

    def check_whole(self, folder: Path) -> None:
        """Raises `ValueError` if the result in `folder` is not as it was written, for example after a crash."""
        if not any(folder.iterdir()):
            raise ValueError(f"{folder} is damaged: it is empty")

    def trouble(self, folder: Path) -> str:
        """Problems of the result in `folder`, such as a failed audit; empty if there are none."""
        return ""

    @cached_property
    def key(self) -> str:
        """A digest of the `run` method's name and the content. It starts with a letter, so that no reader of a dataset
        takes it for a number.

        Classes that share a `run` method share their results.
        """
        runs = type(self).run
        kind = f"{runs.__module__}.{runs.__qualname__}\0".encode()
        return "r" + hashlib.blake2b(kind + self.content, digest_size=10).hexdigest()


@dataclass(frozen=True)
class Simulation(Task):
    """A run of a scenario.

    It carries the content of its files, so it can run on machines that share no files with this one.
    """

    toml: str
    """The scenario with every default filled in."""
    files: tuple[tuple[str, str, bytes], ...] = field(default=(), repr=False)
    """Files that the scenario names: key, name, content."""
    level: Level = "packet"
    crates: tuple[tuple[str, str], ...] = ()
    """Folders of crates that it has transports from, by the transports' names. Their digests are in `toml`."""

    @classmethod
    def of(cls: type[_Simulation], scenario: Scenario, level: Level = "packet") -> _Simulation:
        """The run of a scenario, with the present content of the files that it names."""
        files = [(key, path.name, _content(key, path)) for key, path in scenario._files()]
        return cls(scenario.to_toml(), tuple(files), level, tuple(scenario._crates().items()))

    @property
    def content(self) -> bytes:
        """The build of Clearway, the level, the scenario without its name, and the files. The scenario holds digests of
        crates and of controls in Python.
        """
        named, _, rest = self.toml.partition("\n")
        toml = rest if named.startswith("name = ") else self.toml
        parts = [text.encode() for text in (_core.__version__, _core.COMMIT, _core.SOURCE, self.level, toml)]
        parts += [part for key, _, content in self.files for part in (key.encode(), content)]
        return b"".join(len(part).to_bytes(8, "big") + part for part in parts)

    def run(self, folder: Path, threads: int, told: Told) -> None:
        """Runs the simulation."""

        def listen(at: Progress) -> None:
            told(at.fraction, f"{at.flows_done:,} of {at.flows:,} flows, {at.now_ps / 1e9:,.3f} ms")

        # The files lie beside the result: who removes what a killed process has left removes them, too.
        folder.parent.mkdir(parents=True, exist_ok=True)
        with self._scenario(folder.parent) as scenario:
            result = run(scenario, level=self.level, threads=threads, progress=listen)
        result.scenario_toml = self.toml
        result.save(folder)

    def row(self, folder: Path) -> dict[str, Any]:
        """The columns of a comparison's table, whether the network kept up (see `sustain`), and the cost of the run."""
        result = Result.load(folder)
        row = _row(result)
        del row["run"]
        times = (result.flows[column].astype(float) for column in ("start_ps", "delivered_ps", "bytes"))
        cost = {"packet hops": result.info.get("packet_hops", 0), "wall seconds": result.info["wall_seconds"]}
        return row | {"kept up": kept_up(*times)} | cost | {"digest": result.digest or ""}

    def check_whole(self, folder: Path) -> None:
        """Compares its files with their checksums."""
        check_whole(folder)

    def trouble(self, folder: Path) -> str:
        """The faults that the audit found."""
        audit = json.loads((folder / "run.json").read_text(encoding="utf-8"))["audit"]
        return "; ".join(f"audit: {finding['name']}: {finding['detail']}" for finding in audit if not finding["ok"])

    @contextmanager
    def _scenario(self, beside: Path) -> Iterator[Scenario]:
        with tempfile.TemporaryDirectory(prefix=".clearway-", dir=beside) as place:
            said = dict[str, Path]()
            for key, name, content in self.files:
                # Files of one key, a rank's each, are named by what they have in common.
                folder = said[key].parent if key in said else Path(place) / str(len(said))
                folder.mkdir(exist_ok=True)
                (folder / name).write_bytes(content)
                said.setdefault(key, folder / (name.removesuffix(f".0{OF_A_RANK}") if ".chakra.path" in key else name))
            sets = [(key, json.dumps(str(path))) for key, path in said.items()]
            sets += [(f"transports.{name}.folder", json.dumps(crate)) for name, crate in self.crates]
            yield Scenario(outside.read(self.toml, "scenario", ".", sets))


class Point:
    """A run of a sweep: what to run, and its label on each axis.

    >>> import clearway as cw
    >>> tiny = cw.Scenario.load("examples/tiny.toml")
    >>> cw.Point(tiny.with_(seed=2), {"transport": "udp", "seed": 2}).name
    'udp, seed 2'
    """

    def __init__(self, what: Scenario | Task, labels: Mapping[str, Label], level: Level = "packet") -> None:
        self.task = Simulation.of(what, level) if isinstance(what, Scenario) else what
        self.labels = dict(labels)
        self.check: Callable[[], object] = what.check

    @property
    def key(self) -> str:
        """The key of its task."""
        return self.task.key

    @property
    def name(self) -> str:
        """All labels in one line: words as they are, numbers with the name of their axis."""
        words = [value if isinstance(value, str) else f"{axis} {_short(value)}" for axis, value in self.labels.items()]
        return ", ".join(words) or "run"

    def __repr__(self) -> str:
        return f"Point({self.name!r}, {self.key})"


def _content(key: str, path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise ScenarioError(str(path), None, key, "could not be read: it is not a file")
        return _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise ScenarioError(str(path), None, key, f"could not be read: {error.strerror}") from None


@lru_cache(maxsize=8)
def _read(path: Path, changed_ns: int) -> bytes:
    """The content of a file, which all points of a sweep share."""
    return path.read_bytes()


def _short(value: Label) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower()
