"""`sweep.toml`: base scenarios and what is varied over them. `docs/sweeps.md` explains its keys."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clearway.comparisons.seeds import seeds_from
from clearway.errors import ScenarioError
from clearway.files.places import slug
from clearway.files.reach import is_below
from clearway.scenarios.scenario import Scenario, _toml, read_text
from clearway.sweeps.axes import Axis, Choice, chosen, cross, label, short_names, too_many
from clearway.sweeps.cluster import Launcher, refused
from clearway.sweeps.points import Label
from clearway.sweeps.sweep import Sweep, named
from clearway.sweeps.values import span

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KEYS = ("name", "scenario", "set", "vary", "zip", "skip", "store", "cluster")
LONG = ("values", "name", "labels")
RANGE = ("from", "to", "step", "factor", "count")
# Of longer files errors name the key alone.
LINES = 1_000
CLUSTER = ("launcher", "arguments", "scale", "adapt")

Path_ = Sequence[str | int]
"""The path to a value in a document: keys, and indices of list entries."""


def load(
    path: Path, folder: str | Path | None, store: str | Path | None, seeds: int | Sequence[int] | None = None
) -> Sweep:
    """The sweep of a file; `ScenarioError` names the file, the line and the key of an error."""
    return _File(path, read_text(path)).sweep(folder, store, seeds)


class _File:
    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text
        try:
            self.read: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ScenarioError(str(path), None, "", str(error)) from None
        except RecursionError:
            raise ScenarioError(str(path), None, "", "tables or lists are nested too deeply") from None
        self.places: dict[str, Path_] = {}
        """The place of each varied key."""

    def sweep(self, folder: str | Path | None, store: str | Path | None, seeds: int | Sequence[int] | None) -> Sweep:
        """The sweep that the file describes."""
        self.known((), self.read, KEYS)
        bases = self.same(self.bases())
        axes = self.axes() if seeds is None else self.seeded(self.axes(), next(iter(bases.values())), seeds)
        skips = self.skips([name for axis in axes for name in axis.names] + (["scenario"] if len(bases) > 1 else []))
        level = self.read.get("set", {}).get("level", "packet")
        crowded = too_many(len(bases), axes)
        if crowded:
            key = max(axes, key=lambda axis: len(axis.steps)).keys[0]
            raise self.error(self.places[key], crowded)
        points = cross(
            bases, axes, lambda labels: not any(_matches(skip, labels) for skip in skips), self.located, level
        )
        if not points:
            raise self.error((), "skip leaves no combination to run; delete one")
        name = self.text_at(("name",)) if "name" in self.read else self.path.stem
        place = Path(folder if folder is not None else Path("out") / slug(name))
        if store is None and "store" in self.read:
            store = self.store(place)
        sweep = Sweep(points, place, store=store, name=name, launcher=self.launcher())
        sweep.located = lambda point, error: self.located({}, named(point, error))
        return sweep

    def seeded(self, axes: list[Axis], base: Scenario, seeds: int | Sequence[int]) -> list[Axis]:
        """The axes with these seeds, in the place of those that the file varies."""
        tied = next((axis for axis in axes if "seed" in axis.keys and len(axis.keys) > 1), None)
        if tied is not None:
            raise self.error(self.places["seed"], "seed varies together with other keys here; other seeds do not fit")
        self.places.setdefault("seed", ())
        drawn = seeds_from(int(base.to_dict()["seed"]), seeds)
        return [*(axis for axis in axes if list(axis.keys) != ["seed"]), Axis.of("seed", "seed", drawn)]

    def store(self, out: Path) -> Path:
        """The store that the file names, in the folder of the results: the file may come from another person."""
        said = self.text_at(("store",))
        if not is_below(said):
            raise self.error(
                ("store",),
                f"{_toml(said)} is not in the folder of the sweep's results, {out}; write a name in it, or let the "
                f"command line name the folder: --store {self.path.parent / said}",
            )
        return out / said

    def bases(self) -> dict[str, Scenario]:
        """The base scenarios by name: from files, or from this file."""
        given = self.read.get("scenario")
        if isinstance(given, Mapping):
            return {slug(self.path.stem): self.inline(given)}
        files = [given] if isinstance(given, str) else given
        if not isinstance(files, list) or not files or not all(isinstance(file, str) for file in files):
            what = "missing" if given is None else f"is {given!r}"
            raise self.error(
                ("scenario",),
                f'{what}; name a file, scenario = "tiny.toml", or several in a list, or write one below [scenario]',
            )
        bases: dict[str, Scenario] = {}
        for file in files:
            scenario = Scenario.load(self.path.parent / file)
            if scenario.name in bases:
                raise self.error(
                    ("scenario",), f"two scenarios have the name {scenario.name!r}; give each a different one"
                )
            bases[scenario.name] = scenario
        return bases

    def same(self, bases: Mapping[str, Scenario]) -> dict[str, Scenario]:
        """The scenarios, with the keys of [set] set in each."""
        sets = self.leaves(("set",), self.table_at(("set",)))
        self.places |= {key: place for key, (place, _) in sets.items()}
        choice = {key: value for key, (_, value) in sets.items()}
        try:
            return {name: chosen(scenario, choice) for name, scenario in bases.items()}
        except ScenarioError as error:
            raise self.located(choice, error) from None

    def inline(self, given: Mapping[str, Any]) -> Scenario:
        """The scenario below [scenario]. Each key keeps its line, so that errors name the right one."""
        lines, inside = [], False
        for line in self.text.splitlines():
            bare = line.strip()
            if bare.startswith("[") and "=" not in bare.partition("]")[0]:
                head = bare.lstrip("[").lstrip()
                inside = head.startswith(("scenario]", "scenario."))
                line = "" if head.startswith("scenario]") else line.replace("scenario.", "", 1)
            lines.append(line if inside else "")
        text = "\n".join(lines)
        try:
            faithful = tomllib.loads(text) == given
        except tomllib.TOMLDecodeError:
            faithful = False
        if not faithful:
            text = "\n".join(f"{key} = {_toml(value)}" for key, value in given.items())
        return Scenario.from_toml(text, str(self.path), self.path.parent)

    def axes(self) -> list[Axis]:
        """The axes: one for each key of [vary], one for all keys of a [[zip]]."""
        groups: list[tuple[Path_, dict[str, tuple[Path_, Any]]]] = []
        vary = self.table_at(("vary",))
        for key, found in self.leaves(("vary",), vary).items():
            groups.append((found[0], {key: found}))
        for number in range(len(self.tables_at("zip"))):
            path = ("zip", number)
            groups.append((path, self.leaves(path, self.at(path))))
        keys = [key for _, group in groups for key in group]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise self.error(("vary",), f'"{twice}" is varied twice; vary it once')
        short = short_names(keys)
        axes = [self.axis(path, group, short) for path, group in groups]
        names = [name for axis in axes for name in axis.names]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise self.error(("vary",), f'two axes have the name "{twice}"; give one of them another name')
        return axes

    def axis(self, path: Path_, group: Mapping[str, tuple[Path_, Any]], short: Mapping[str, str]) -> Axis:
        """An axis of one key, or of several of equal length."""
        names, columns, called = [], [], []
        for key, (place, said) in group.items():
            self.places[key] = place
            long = said if isinstance(said, Mapping) else {"values": said}
            values = self.values(place, long)
            labels = long.get("labels", [label(value) for value in values])
            plain = isinstance(labels, list) and all(isinstance(word, str | int | float) for word in labels)
            if not plain or len(labels) != len(values):
                raise self.error((*place, "labels"), f"must be {len(values)} words or numbers, one for each value")
            if len({(str(word), type(word)) for word in labels}) < len(labels) and len(group) == 1:
                raise self.error(place, "two values have the same label; give each a different one")
            names.append(str(long.get("name", short[key])))
            columns.append(values)
            called.append(labels)
        lengths = {key: len(column) for key, column in zip(group, columns, strict=True)}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{key} {count}" for key, count in lengths.items())
            raise self.error(path, f"keys that vary together need equally many values; these have {counts}")
        if not columns:
            raise self.error(path, "names no key to vary; add one, or delete this table")
        return Axis(names, list(group), list(zip(*columns, strict=True)), list(zip(*called, strict=True)))

    def values(self, place: Path_, long: Mapping[str, Any]) -> list[Any]:
        """A list, or a range."""
        if "values" in long:
            self.known(place, long, LONG)
            values = long["values"]
            if not isinstance(values, list) or not values:
                raise self.error(
                    place,
                    f"{_toml(values)} is neither a list of values, such as [1, 2], nor a range, such as "
                    "{ from = 1, to = 5 }",
                )
            return values
        self.known(place, long, RANGE + LONG[1:])
        try:
            return span({key: long[key] for key in RANGE if key in long})
        except ValueError as error:
            raise self.error(place, str(error)) from None

    def skips(self, names: Sequence[str]) -> list[Mapping[str, list[Any]]]:
        """The combinations that are left out: by axis, their labels."""
        skips: list[Mapping[str, list[Any]]] = []
        for number, skip in enumerate(self.tables_at("skip")):
            self.known(("skip", number), skip, names)
            skips.append({name: value if isinstance(value, list) else [value] for name, value in skip.items()})
        return skips

    def launcher(self) -> Launcher | None:
        """The cluster, if one is named."""
        if "cluster" not in self.read:
            return None
        said = self.table_at(("cluster",))
        self.known(("cluster",), said, CLUSTER)
        launcher = self.text_at(("cluster", "launcher"))
        arguments, scale, adapt = (self.table_at(("cluster", key)) for key in CLUSTER[1:])
        wrong = refused(launcher, arguments)
        if wrong is not None:
            raise self.error(("cluster", wrong[0]), wrong[1])
        return Launcher(launcher, arguments, scale, adapt)

    def leaves(self, path: Path_, table: Mapping[str, Any]) -> dict[str, tuple[Path_, Any]]:
        """The keys of a scenario in a table, dotted or nested, each with its place and its values."""
        found: dict[str, tuple[Path_, Any]] = {}
        for key, value in table.items():
            place = (*path, key)
            if isinstance(value, Mapping) and not set(value) & {"from", "values"}:
                inner = self.leaves(place, value)
                found |= {f"{key}.{rest}": leaf for rest, leaf in inner.items()}
            else:
                found[key] = (place, value)
        return found

    def located(self, choice: Choice, error: ScenarioError) -> ScenarioError:
        """An error of a scenario, with the place in this file of the value that caused it."""
        blamed = error.file.removeprefix("--set ").partition("=")[0] if error.file.startswith("--set ") else None
        if blamed is not None and blamed not in self.places:
            blamed = "load" if blamed.endswith(".load") and "load" in self.places else None
        if blamed is None:
            return error
        place = self.places[blamed]
        value = f"{_toml(choice[blamed])}: " if blamed in choice else ""
        return self.error(place, value + error.message)

    def known(self, path: Path_, table: Mapping[str, Any], keys: Sequence[str]) -> None:
        """Refuses an unknown key; the error names the nearest known one."""
        for key in table:
            if key not in keys:
                near = difflib.get_close_matches(key, keys, 1)
                hint = f'; did you mean "{near[0]}"? Known: ' if near else ". Known: "
                raise self.error((*path, key), f'"{key}" is not a known key here{hint}{", ".join(keys)}')

    def at(self, path: Path_) -> Any:
        """The value at a place; none if there is none."""
        return _at(self.read, path)

    def table_at(self, path: Path_) -> Mapping[str, Any]:
        found = self.at(path)
        if found is not None and not isinstance(found, Mapping):
            raise self.error(path, f"{_toml(found)} is not a table")
        return found or {}

    def tables_at(self, key: str) -> list[Mapping[str, Any]]:
        found = self.read.get(key, [])
        if not isinstance(found, list) or not all(isinstance(table, Mapping) for table in found):
            raise self.error((key,), f"is not a list of tables; write [[{key}]] above each")
        return found

    def text_at(self, path: Path_) -> str:
        found = self.at(path)
        if not isinstance(found, str):
            raise self.error(path, "missing" if found is None else f"{_toml(found)} is not text")
        return found

    def error(self, path: Path_, message: str) -> ScenarioError:
        """An error at the place of a key, or of the innermost of its parents that the file has."""
        while path and _at(self.read, path) is None:
            path = path[:-1]
        key = ""
        for part in path:
            key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else part
        return ScenarioError(str(self.path), self.line(path) if path else None, key, message)

    def line(self, path: Path_) -> int | None:
        """The line at which a value begins: the first lines that parse as a document with the value end there.

        None for a file so long that the search would take seconds.
        """
        lines = self.text.splitlines()
        if len(lines) > LINES:
            return None
        begins = 1
        for count in range(1, len(lines) + 1):
            try:
                read = tomllib.loads("\n".join(lines[:count]))
            except tomllib.TOMLDecodeError:
                continue
            if _at(read, path) is not None:
                return begins
            begins = count + 1
        return begins


def _at(table: Any, path: Path_) -> Any:
    for part in path:
        try:
            table = table[part]
        except (KeyError, IndexError, TypeError):
            return None
    return table


def _matches(skip: Mapping[str, list[Any]], labels: Mapping[str, Label]) -> bool:
    return all(labels.get(name) in values for name, values in skip.items())
