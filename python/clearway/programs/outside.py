"""Scenarios with transports from crates outside of Clearway's tree: the program that such a crate builds reads and runs
them, in the place of the simulator that this package has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from clearway import _core
from clearway.errors import ScenarioError
from clearway.programs.program import Crate, Program, Sets, Source, trusted
from clearway.programs.trust import require


def read(text: str, name: str, folder: str | Path, sets: Sets) -> _core.Scenario | Outside:
    """A scenario, read by Clearway itself, or by the program of a crate that it has a transport from."""
    found = _core.outside(text, sets)
    if not found:
        return _core.Scenario.parse(text, name, folder, sets)
    return _read_outside(Source(text, name, str(folder), sets), found)


def with_sets(core: _core.Scenario | Outside, sets: Sets, controls: Sequence[Any] = ()) -> _core.Scenario | Outside:
    """The same with more keys set over it."""
    if isinstance(core, Outside):
        source, has_class = core.origin, False
    else:
        text, name, folder, before, has_class = core.parts()
        source = Source(text, name, folder, before)
    more = Source(source.text, source.name, source.folder, [*source.sets, *sets])
    found = _core.outside(more.text, more.sets)
    if not found and not isinstance(core, Outside):
        return core.with_sets(sets, list(controls))
    if found and (has_class or controls):
        key = f"transports.{next(iter(found))}"
        more.refuse(key, "a scenario can't have a transport of a crate and a Control in Python; choose one of them")
    if found:
        return _read_outside(more, found)
    plain = _core.Scenario.parse(more.text, more.name, more.folder, more.sets)
    return plain.with_sets([], list(controls)) if controls else plain


def simulate(
    core: _core.Scenario | Outside,
    threads: int,
    progress: Callable[..., object] | None,
    memory_bytes_max: int | None,
    parts: int | None,
    pcap: tuple[dict[str, str], int] | None,
    checkpoint: tuple[str, Path] | None = None,
    resume: Path | None = None,
) -> Any:
    """A run, and what it has captured."""
    if checkpoint is not None or resume is not None:
        core = native(core, "a run with checkpoints")
    if isinstance(core, Outside):
        return core.simulate(threads, progress, memory_bytes_max, parts, pcap)
    return _core.simulate(core, threads, progress, memory_bytes_max, parts, pcap, checkpoint, resume)


def estimate(
    core: _core.Scenario | Outside, progress: Callable[..., object] | None, memory_bytes_max: int | None
) -> Any:
    """A run at flow level."""
    if isinstance(core, Outside):
        return core.estimate(progress, memory_bytes_max)
    return _core.estimate(core, progress, memory_bytes_max)


def native(core: _core.Scenario | Outside, what: str) -> _core.Scenario:
    """A scenario that Clearway itself has read; `what` says what only such a one can do."""
    if isinstance(core, Outside):
        names = ", ".join(core.crate.names)
        raise ScenarioError(
            core.origin.name,
            None,
            f"transports.{core.crate.names[0]}",
            f"the transport {names} is in a crate of its own, which only the simulator runs, and not {what}; choose "
            "one of Clearway's transports for it",
        )
    return core


def _read_outside(source: Source, found: dict[str, str]) -> Outside:
    folders = {(Path(source.folder) / folder).resolve() for folder in found.values()}
    if len(folders) > 1:
        first, second, *_ = found
        source.refuse(
            f"transports.{second}",
            f"is in another crate than {first}, and a run has one program; let one crate have both transports",
        )
    return Outside(source, Crate.find(source, found))


class Outside:
    """A scenario that the program of a crate has read. It does what the core's own scenarios do."""

    def __init__(self, source: Source, crate: Crate) -> None:
        self.origin, self.crate = source, crate
        self.used: dict[str, Any] = {}
        """The cost of the last run."""
        said = self._ask("read")["read"]
        self._toml, self.name, self.transports = str(said["toml"]), str(said["name"]), list(said["transports"])

    @property
    def source(self) -> str:
        """The file's name."""
        return self.origin.name

    def to_toml(self) -> str:
        """With every default filled in."""
        return self._toml

    def check(self, memory_bytes_max: int | None, level: str = "packet") -> tuple[int, int]:
        """Works it out as a run at packet level would: (hosts, flows). Other levels it has only read."""
        if level != "packet":
            return 0, 0
        said = self._ask({"check": {"memory_bytes_max": memory_bytes_max}})["check"]
        return int(said["hosts"]), int(said["flows"])

    def foresee(self, probe_cpu_s: float, memory_bytes_max: int | None) -> dict[str, Any]:
        """The cost of a run."""
        asked = {"foresee": {"probe_cpu_s": probe_cpu_s, "memory_bytes_max": memory_bytes_max}}
        said: dict[str, Any] = self._ask(asked)["foreseen"]
        return said

    def simulate(
        self,
        threads: int,
        progress: Callable[..., object] | None,
        memory_bytes_max: int | None,
        parts: int | None,
        pcap: tuple[dict[str, str], int] | None,
    ) -> Any:
        """A run, as `_core.simulate` gives it."""
        how = {"threads": threads, "parts": parts, "memory_bytes_max": memory_bytes_max, "pcap": pcap}
        return self._ask({"simulate": how}, progress)["result"]

    def estimate(self, progress: Callable[..., object] | None, memory_bytes_max: int | None) -> Any:
        """A run at flow level, as `_core.estimate` gives it."""
        run, _ = self._ask({"estimate": {"memory_bytes_max": memory_bytes_max}}, progress)["result"]
        return run

    def _ask(self, asked: Any, progress: Callable[..., object] | None = None) -> dict[str, Any]:
        source, crate = self.origin, self.crate
        # Once more: it may have been built again since the scenario was read.
        refuse = partial(source.refuse, f"transports.{crate.names[0]}")
        require(crate.folder, crate.program, partial(trusted, crate), refuse)
        scenario = {
            "text": source.text,
            "name": source.name,
            "folder": source.folder,
            "sets": source.sets,
            "crates": dict.fromkeys(crate.names, crate.digest),
        }
        with Program(source, crate) as program:
            program.send({"scenario": scenario, "asked": asked})
            said = program.answer(progress)
        self.used = program.used
        return said
