"""The result of a sweep."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from clearway.comparisons.unchanged import COLUMN, Ran, Unchanged, same_as, unchanged
from clearway.files.whole import replace
from clearway.results.advice import by_warning
from clearway.results.read import read_table, write_table
from clearway.results.result import Result
from clearway.running.machines import tell
from clearway.running.run import _cores
from clearway.sweeps.points import Label, Point, Simulation
from clearway.sweeps.store import Store

# The state of a point.
DONE, TROUBLE, FAILED, MISSING = "done", "audit", "failed", "missing"


class SweepResult:
    """The results of a sweep. Each is read from disk when it is used."""

    def __init__(
        self, points: Sequence[Point], store: Path, folder: Path, name: str, interrupted: bool = False
    ) -> None:
        self.points = list(points)
        self.folder = folder
        self.name = name
        self.interrupted = interrupted
        """Whether the sweep was ended before it was done."""
        self._store = Store(store)

    @cached_property
    def status(self) -> dict[str, str]:
        """The state of each point, by its name: `done`; `audit` (done, but its audit found faults); `failed`; or
        `missing`.
        """
        return {point.name: self._status(point) for point in self.points}

    @property
    def failed(self) -> dict[str, str]:
        """The error of each failed run, by the name of its point."""
        errors = {
            point.name: self._store.failure(point.key) for point in self.points if self.status[point.name] == FAILED
        }
        return {name: failure.error for name, failure in errors.items() if failure is not None}

    @property
    def troubles(self) -> dict[str, str]:
        """The faults that audits found, by the name of the point."""
        found = [point for point in self.points if self.status[point.name] == TROUBLE]
        return {point.name: point.task.trouble(self._store.place(point.key)) for point in found}

    @property
    def unchanged(self) -> list[Unchanged]:
        """Runs over another transport, flow control or fabric that have the digest of an earlier run: every packet was
        the same. `str` of each says which, and the likely reason.
        """
        digests = self._rows.get("digest")
        if digests is None:
            return []
        simulations = [point for point in self._done if isinstance(point.task, Simulation)]
        return unchanged(
            Ran(point.name, str(digests[point.name]), point.task.level, point.task.toml)
            for point in simulations
            if isinstance(point.task, Simulation)
        )

    @cached_property
    def warnings(self) -> dict[str, list[str]]:
        """Each warning, with the names of the points that have it."""
        runs = (
            (point.name, json.loads((self._store.place(point.key) / "run.json").read_text(encoding="utf-8")))
            for point in self._done
            if isinstance(point.task, Simulation)
        )
        return by_warning((name, run.get("warnings", [])) for name, run in runs)

    @property
    def ok(self) -> bool:
        """Whether every run is done and passed its audit."""
        return set(self.status.values()) <= {DONE}

    @property
    def axes(self) -> list[str]:
        """The names of the axes."""
        return list(dict.fromkeys(axis for point in self.points for axis in point.labels))

    def table(self) -> pd.DataFrame:
        """One row per point: its labels, its state, and the columns of its task.

        For a simulation these are the slowdown of all, short and long flows, goodput, lost and resent data, and the
        cost of the run.
        """
        return self._table.copy()

    def __getitem__(self, name: str) -> Result:
        """The result of a simulation, by the name of its point."""
        point = next((point for point in self.points if point.name == name), None)
        if point is None:
            raise KeyError(
                f"there is no point {name!r}; the {len(self.points)} points are {', '.join(list(self.status)[:8])}, ..."
            )
        return self._load(point)

    def results(self) -> Iterator[tuple[Point, Result]]:
        """Iterates over the simulations that are done, each with its result."""
        for point in self._done:
            if isinstance(point.task, Simulation):
                yield point, self._load(point)

    @property
    def dataset(self) -> Path:
        """A folder with all tables of all runs: `dataset/TABLE/run=KEY/part.parquet`, with a column per axis,
        and `runs.parquet` beside it.

        It is written or updated when this property is read. Any reader of partitioned Parquet (pandas, polars, DuckDB)
        reads a table's folder. An axis with the name of a table's column is called `axis_NAME`.
        """
        place = self.folder / "dataset"
        sources = {point.name: sorted(self._store.place(point.key).glob("*.parquet")) for point in self._done}
        columns = self._columns([path for paths in sources.values() for path in paths])
        wanted = set()
        for point in self._done:
            for source in sources[point.name]:
                part = place / source.stem / f"run={self._runs[point.name]}" / "part.parquet"
                wanted.add(part)
                _write_part(source, part, {name: values[point.name] for name, values in columns.items()})
        for part in set(place.glob("*/run=*/part.parquet")) - wanted:
            part.unlink()
            # Files of other programs stay.
            with contextlib.suppress(OSError):
                part.parent.rmdir()
        frame = self._table.reset_index(names="name").assign(run=list(self._runs.values())).drop(columns="key")
        replace(self.folder / "runs.parquet", lambda path: frame.to_parquet(path, write_page_checksum=True))
        return place

    def report(self, path: str | Path | None = None) -> Path:
        """Writes a report page by axis: one file that needs no network. Its default is `report.html` in the sweep's
        folder.
        """
        from clearway.sweeps.page import write

        return write(self, Path(path) if path is not None else self.folder / "report.html")

    @cached_property
    def _table(self) -> pd.DataFrame:
        same = same_as(self.unchanged)
        return (
            self._rows.assign(**{COLUMN: [same.get(str(name), "") for name in self._rows.index]})
            if same
            else self._rows
        )

    @cached_property
    def _rows(self) -> pd.DataFrame:
        def row(point: Point) -> dict[str, Any]:
            status = self.status[point.name]
            said = point.task.row(self._store.place(point.key)) if status in (DONE, TROUBLE) else {}
            return {"run": point.name, **point.labels, "status": status, **said, "key": point.key}

        with ThreadPoolExecutor(_cores()) as pool:
            rows = list(pool.map(row, self.points))
        front = ["run", *self.axes, "status"]
        frame = pd.DataFrame(rows, columns=list(dict.fromkeys([*front, *(name for row in rows for name in row)])))
        return frame.set_index("run")

    @cached_property
    def _runs(self) -> dict[str, str]:
        """The name of each point's run in the dataset: its key, numbered if earlier points have the same key."""
        keys = [point.key for point in self.points]
        before = (
            [keys[:number].count(key) for number, key in enumerate(keys)]
            if len(set(keys)) < len(keys)
            else [0] * len(keys)
        )
        numbered = [f"{key}-{count + 1}" if count else key for key, count in zip(keys, before, strict=True)]
        return dict(zip((point.name for point in self.points), numbered, strict=True))

    def _columns(self, sources: Sequence[Path]) -> dict[str, dict[str, pa.Scalar]]:
        """For each axis, its values by the names of the points."""
        tables = {path.stem: path for path in sources}
        taken = {"run", *(column for path in tables.values() for column in pq.read_schema(path).names)}
        columns = {}
        for axis in self.axes:
            values = _array([point.labels.get(axis) for point in self.points])
            name = f"axis_{axis}" if axis in taken else axis
            columns[name] = dict(zip((point.name for point in self.points), values, strict=True))
        return columns

    @cached_property
    def _done(self) -> list[Point]:
        return [point for point in self.points if self.status[point.name] in (DONE, TROUBLE)]

    def _load(self, point: Point) -> Result:
        result = Result.load(self._store.place(point.key))
        result.name = point.name
        return result

    def _status(self, point: Point) -> str:
        if self._store.has(point.key):
            damage = self._store.damage(point.key, point.task.check_whole)
            if damage:
                tell(f"warning: {point.name}: {damage}; running the sweep again computes it anew")
                return MISSING
            return TROUBLE if point.task.trouble(self._store.place(point.key)) else DONE
        return FAILED if self._store.failure(point.key) is not None else MISSING

    def __repr__(self) -> str:
        states = list(self.status.values())
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        return f"SweepResult({self.name!r}: {counts})"


def _array(values: Sequence[Label | None]) -> pa.Array:
    """The values in one type: numbers if all are numbers, else strings."""
    known = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in known):
        return pa.array(values, pa.bool_())
    if all(isinstance(value, int) and not isinstance(value, bool) for value in known):
        return pa.array(values, pa.int64())
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return pa.array(values, pa.float64())
    words = [value if value is None or isinstance(value, str) else str(value).lower() for value in values]
    return pa.array(words, pa.string())


def _write_part(source: Path, part: Path, labels: Mapping[str, pa.Scalar]) -> None:
    """Writes a table of a run with one column for each axis, unless it is there already."""
    said = json.dumps({name: [str(value.type), value.as_py()] for name, value in labels.items()}).encode()
    if part.exists() and _axes_of(part) == said:
        return
    table = read_table(source)
    for place, (name, value) in enumerate(labels.items()):
        column = pa.repeat(value, len(table))
        table = table.add_column(place, name, column.dictionary_encode() if pa.types.is_string(value.type) else column)
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), b"axes": said})
    replace(part, lambda path: write_table(table, path))


def _axes_of(part: Path) -> bytes | None:
    """The axes that a part of the dataset records; none if it is damaged and must be written again."""
    try:
        axes: bytes | None = (pq.read_schema(part).metadata or {}).get(b"axes")
    except (OSError, pa.ArrowException):
        return None
    return axes
