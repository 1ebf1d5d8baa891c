"""A scenario, read from TOML and changed."""

from __future__ import annotations

import datetime
import itertools
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from clearway import _core
from clearway.defaults import FastForward, Level
from clearway.errors import ScenarioError
from clearway.programs import outside
from clearway.scenarios import control as _control
from clearway.scenarios.forecast import Forecast, foreseen, memory_bytes_max

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Value = str | int | float | bool | list[Any] | Mapping[str, Any] | _control.Control


Scenarios: TypeAlias = "Scenario | str | Path | Iterable[Scenario | str | Path]"
"""One or several, each read already or the file that it is in."""


def scenario_of(given: Scenario | str | Path) -> Scenario:
    """A scenario, given as such or as a file."""
    if isinstance(given, Scenario):
        return given
    if isinstance(given, str) and "\n" in given:
        raise TypeError("this is the text of a scenario and not a file's name; read it by Scenario.from_toml(text)")
    if not isinstance(given, str | Path):
        raise TypeError(
            f"{type(given).__name__} {given!r:.60} is not a scenario; give a Scenario, or the name of its file, such "
            "as 'x.toml'"
        )
    return Scenario.load(given)


def scenarios_of(given: Scenarios) -> list[Scenario]:
    """One or several scenarios, given as such or as files."""
    if isinstance(given, Iterable) and not isinstance(given, str):
        return [scenario_of(one) for one in given]
    return [scenario_of(given)]


class Scenario:
    """A scenario: network, hosts, switches, traffic, and transports. It never changes: `with_` returns another.

    >>> import clearway as cw
    >>> s = cw.Scenario.from_toml('''
    ... transport = "udp"
    ... [fabric.star]
    ... hosts = 2
    ... [[traffic]]
    ... sizes = { constant = "1MB" }
    ... arrivals = "all_at_once"
    ... ''')
    >>> s.with_({"fabric.star.hosts": 4}).check()
    (4, 4)

    Scenarios that say the same are equal, and can be keys and be pickled.

    >>> import pickle
    >>> s.with_(seed=2) == s, s.with_(seed=1) == s, pickle.loads(pickle.dumps(s)) == s
    (False, True, True)
    """

    def __init__(self, core: _core.Scenario | outside.Outside, folder: str | Path = ".") -> None:
        self._core = core
        self._folder = Path(folder)

    @staticmethod
    def load(path: str | Path, sets: list[tuple[str, str]] | None = None) -> Scenario:
        """Reads a scenario from a file, with dotted keys set over it as by `with_text`; `ScenarioError` names file,
        line and key of an error.
        """
        path = Path(path)
        text = read_text(path)
        return Scenario(outside.read(text, str(path), path.parent, sets or []), path.parent)

    @staticmethod
    def from_toml(text: str, name: str = "scenario", folder: str | Path = ".") -> Scenario:
        """Reads a scenario from TOML; relative paths of files start from `folder`."""
        return Scenario(outside.read(text, name, folder, []), folder)

    def with_(
        self,
        keys: Mapping[str, Value] | None = None,
        /,
        *,
        seed: int | None = None,
        transport: str | Mapping[str, Any] | _control.Control | None = None,
        flow_control: str | Mapping[str, Any] | None = None,
        fast_forward: FastForward | None = None,
        load: float | None = None,
        name: str | None = None,
    ) -> Scenario:
        """The same scenario with some keys set: dotted ones by `keys`, common ones by name.

        `load` sets the load of every class that has one. `transport` is a name of `clearway.schemes()` or a table such
        as `{"dcpim": {"rounds": 3}}`, or a `clearway.Control` of your own, and replaces the scenario's; so does
        `flow_control`. A name stands for the settings that the scenario has for this scheme, if it has any;
        `{"dcpim": {}}` for its defaults. `fast_forward` is `off`, `exact` or `approximate`.
        """
        controls: list[tuple[str, _control.Control, str]] = []
        named = {
            "seed": seed,
            "transport": transport,
            "flow_control": flow_control,
            "fast_forward": fast_forward,
            "name": name,
        }
        sets = [(key, _toml(_plain(value, controls))) for key, value in named.items() if value is not None]
        if load is not None:
            keyed = list(self._load_keys())
            if not keyed:
                raise ValueError(
                    "load: no traffic class of this scenario has arrivals by load; set the key that it has instead"
                )
            sets += [(key, _toml(float(load))) for key in keyed]
        sets += [(key, _toml(_plain(value, controls))) for key, value in (keys or {}).items()]
        return Scenario(outside.with_sets(self._core, sets, controls), self._folder)

    def with_text(self, sets: list[tuple[str, str]]) -> Scenario:
        """The same scenario with dotted keys set to values from a command line: TOML, or a bare word."""
        return Scenario(outside.with_sets(self._core, sets), self._folder)

    def check(self, *, memory_limit: float | None = None, level: Level = "packet") -> tuple[int, int]:
        """Checks the scenario without running it and returns (hosts, flows). Raises `ScenarioError` as a run at this
        level would.

        A scenario that can't fit the memory is counted, and refused before it is made: `memory_limit` as in
        `clearway.run`.
        """
        return self._core.check(memory_bytes_max(memory_limit), level)

    def forecast(self, *, probe_seconds: float = 1.0, memory_limit: float | None = None) -> Forecast:
        """The cost of a run at packet level: packet-hops, CPU time, memory. See `clearway.Forecast`.

        It runs the beginning on one thread, for `probe_seconds` of CPU time, to see how fast this machine is; 0 leaves
        the CPU time unknown. `memory_limit` as in `clearway.run`.
        """
        return foreseen(self._core.foresee(probe_seconds, memory_bytes_max(memory_limit)))

    def write_job(
        self, *, goal: str | Path | None = None, chakra: str | Path | None = None, job: str | None = None
    ) -> list[Path]:
        """Writes a training job for other tools, and returns the files: GOAL text (LogGOPSim, ATLAHS) to `goal`, with
        times in nanoseconds; Chakra's execution traces (ASTRA-sim) to `chakra`.0.et for rank 0, and so on, with exact
        times.

        `job` is its name; where the scenario has one job, that one. Collectives are written as their messages. Neither
        format says that messages of a channel leave one after the other: where several are under way between two
        ranks, they go side by side when they are read. No file is overwritten.

        >>> import clearway as cw, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> files = cw.Scenario.load("examples/training.toml").write_job(goal=f"{folder}/train.goal")
        >>> files[0].read_text().splitlines()[0]
        'num_ranks 16'
        """
        written: list[Path] = []
        core = outside.native(self._core, "a writer of jobs")
        try:
            for place, is_chakra in ((goal, False), (chakra, True)):
                if place is not None:
                    written += map(Path, _core.write_job(core, place, is_chakra, job, memory_bytes_max(None)))
        except BaseException:
            for file in written:
                file.unlink(missing_ok=True)
            raise
        return written

    def __getattr__(self, name: str) -> NoReturn:
        if name == "estimate":
            raise AttributeError("estimate() is called forecast(): an estimate is a result of level flow or links")
        raise AttributeError(f"a scenario has no {name!r}")

    def __eq__(self, other: object) -> bool:
        """Whether both say the same: every key, with the defaults filled in, and the files that they name."""
        if not isinstance(other, Scenario):
            return NotImplemented
        return self.to_toml() == other.to_toml() and self._files() == other._files()

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __reduce__(self) -> tuple[Callable[..., Scenario], tuple[object, ...]]:
        """Its source; the files that it names are read again where it is unpickled."""
        if isinstance(self._core, outside.Outside):
            origin = self._core.origin
            return _again, (origin.text, origin.name, origin.folder, origin.sets, self._folder)
        text, name, folder, sets, has_class = self._core.parts()
        if has_class:
            raise TypeError("a scenario with a Control of your own can't be pickled; pickle it without, and set that")
        return _again, (text, name, folder, sets, self._folder)

    def to_toml(self) -> str:
        """As TOML, with every default filled in."""
        return self._core.to_toml()

    def to_dict(self) -> dict[str, Any]:
        """The same as nested dictionaries."""
        return tomllib.loads(self.to_toml())

    @property
    def name(self) -> str:
        """Its name, or its file's."""
        return self._core.name or Path(self._core.source).stem

    @property
    def transports(self) -> list[str]:
        """The transports of its classes, each once."""
        return self._core.transports

    def _load_keys(self) -> list[str]:
        keys = []
        for index, traffic in enumerate(self.to_dict().get("traffic", [])):
            arrivals = traffic.get("arrivals")
            if isinstance(arrivals, dict):
                keys += [
                    f"traffic.{index}.arrivals.{kind}.load"
                    for kind, settings in arrivals.items()
                    if isinstance(settings, dict) and "load" in settings
                ]
        return keys

    def _files(self) -> list[tuple[str, Path]]:
        """The files that it refers to after it has been read: key, path."""
        read = self.to_dict()
        files = []
        if "file" in read["fabric"]:
            # Already relative to its folder.
            files.append(("fabric.file.path", Path(read["fabric"]["file"]["path"])))
        for index, traffic in enumerate(read.get("traffic", [])):
            for kind, trace in traffic.get("trace", {}).items():
                files.append((f"traffic.{index}.trace.{kind}.path", self._folder / trace["path"]))
        for index, job in enumerate(read.get("job", [])):
            for kind, trace in job.get("trace", {}).items():
                key, path = f"job.{index}.trace.{kind}", self._folder / trace["path"]
                files += [(f"{key}.path", one) for one in (_of_ranks(path, trace) if kind == "chakra" else [path])]
                if "groups" in trace:
                    files.append((f"{key}.groups", self._folder / trace["groups"]))
        for key, transport in _transports(read):
            if isinstance(transport, dict) and "module" in transport.get("custom", {}):
                files.append((f"{key}.custom.module", self._folder / transport["custom"]["module"]))
        return files

    def _crates(self) -> dict[str, str]:
        """The folders of crates with transports, by the transports' names, from anywhere."""
        crates = self.to_dict().get("transports", {})
        return {name: str((self._folder / crate["folder"]).resolve()) for name, crate in crates.items()}

    def __repr__(self) -> str:
        return f"Scenario({self.name!r}, transports={self.transports})"


def _again(text: str, name: str, folder: str, sets: list[tuple[str, str]], own: Path) -> Scenario:
    """A scenario that was pickled."""
    return Scenario(outside.read(text, name, folder, sets), own)


MOST_BYTES = 64_000_000
"""Of a file that a person has written. A longer one is something else."""


def read_text(path: Path) -> str:
    """The content of a scenario or sweep file; `ScenarioError` if it can't be read or would never end."""
    try:
        # A pipe from a shell, as in `clearway run <(...)`, has a writer.
        handed = str(path).startswith(("/dev/fd/", "/dev/stdin", "/proc/self/fd/")) and not path.is_char_device()
        if path.exists() and not path.is_file() and not path.is_dir() and not handed:
            raise ScenarioError(str(path), None, "", "could not be read: it is a pipe or a device; name a file")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ScenarioError(
                str(path),
                None,
                "",
                f"could not be read: it has more than {MOST_BYTES:,} bytes, which is too long for a scenario",
            )
        return content.decode("utf-8")
    except (OSError, ValueError) as error:
        if isinstance(error, ScenarioError):
            raise
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ScenarioError(str(path), None, "", f"could not be read: {why}") from None


def _of_ranks(prefix: Path, trace: Mapping[str, Any]) -> Iterator[Path]:
    """The files of a Chakra trace, one a rank; without a number of ranks as many as there are."""
    for rank in itertools.count():
        path = prefix.with_name(f"{prefix.name}.{rank}{OF_A_RANK}")
        if rank >= trace.get("ranks", math.inf) or (rank and "ranks" not in trace and not path.exists()):
            return
        yield path


OF_A_RANK = ".et"
"""Behind the rank's number, the end of a file of a Chakra trace."""


def _transports(read: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Each transport that a scenario names, with its key."""
    yield "transport", read["transport"]
    for kind in ("traffic", "job"):
        for index, one in enumerate(read.get(kind, [])):
            if "transport" in one:
                yield f"{kind}.{index}.transport", one["transport"]
            for entry, again in enumerate(one.get("resubmit", [])):
                if "over" in again:
                    yield f"{kind}.{index}.resubmit.{entry}.over", again["over"]
    for name, socket in read.get("live", {}).get("sockets", {}).items():
        if "transport" in socket:
            yield f"live.sockets.{name}.transport", socket["transport"]


def _plain(value: Any, controls: list[tuple[str, _control.Control, str]]) -> Any:
    """A value as a scenario says it; controls of one's own in it go to a list."""
    if isinstance(value, _control.Control):
        said, control = _control.table(value)
        controls.append(control)
        return said
    if isinstance(value, Mapping):
        return {key: _plain(part, controls) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, controls) for part in value]
    return value


def _toml(value: Any) -> str:
    """A value as inline TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(part) for part in value) + "]"
    if isinstance(value, datetime.date | datetime.time):
        # A file of a sweep may have one. JSON has none; the reader of the scenario says where it is wrong.
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return json.dumps(os.fspath(value))
    if hasattr(value, "tolist"):
        # A number or an array of NumPy.
        return _toml(value.tolist())
    if isinstance(value, type):
        raise TypeError(f"{value.__name__} is a class, and a scenario takes an object of it: {value.__name__}()")
    if not isinstance(value, str | int | float | bool):
        raise TypeError(f"{value!r} is no value of a scenario; give a text, a number, true or false, a list or a table")
    return json.dumps(value)
