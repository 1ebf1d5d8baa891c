"""The results of many runs as one lazy frame, with the settings in which the runs differ as columns.

The frames are polars': it reads many Parquet files of unequal columns as one, reads only the columns and rows that are
asked for, and a frame needs no connection and no words of SQL. DuckDB reads such a frame by its variable's name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from clearway.errors import ResultError
from clearway.results.read import read_head
from clearway.results.result import Result
from clearway.results.tables import TABLES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import polars as pl

    from clearway.comparisons.comparison import Comparison

Setting: TypeAlias = "str | int | float | bool"

FACTS = ("ended", "digest", "flows", "flows_completed", "end_ps", "wall_seconds")
"""Of each run's summary, the columns of `Scan.runs` behind its settings."""
SCHEMES = ("transport", "flow_control", "sharing")
"""The keys of which a table with one entry names a scheme and its settings."""


@dataclass(frozen=True)
class _Run:
    name: str
    folder: Path
    settings: Mapping[str, Setting]
    info: Mapping[str, Any]


class Scan:
    """Results of many runs. Nothing of their tables is read before a frame is collected.

    `scan.flows`, or `scan["flows"]`, is a lazy frame of polars with the flows of all runs, and so are the other tables.
    Its first columns say whose row it is: `run`, and each setting in which runs differ. A setting with the name of a
    column of the table is called `run_NAME` there. A value that a run's level does not know is null.

    >>> import clearway as cw, polars as pl, tempfile
    >>> tiny, out = cw.Scenario.load("examples/tiny.toml"), tempfile.mkdtemp()
    >>> swept = cw.sweep(tiny, {"transport": ["dctcp", "udp"], "seed": [1, 2]}, out, progress=False)
    >>> scan = cw.scan(out)
    >>> scan.runs.select("run", "transport", "seed", "flows").row(0)
    ('dctcp, seed 1', 'dctcp', 1, 8)
    >>> by = scan.flows.group_by("run_transport", "seed", maintain_order=True).agg(pl.col("slowdown").max().round(1))
    >>> by.collect().shape
    (4, 3)
    >>> scan.where(transport="udp").comparison().table()["seeds"].to_dict()
    {'udp': 2}
    """

    def __init__(self, runs: Iterable[_Run]) -> None:
        self._runs = list(runs)

    @property
    def runs(self) -> pl.DataFrame:
        """A row for each run: its name, the settings in which runs differ, and facts about it."""
        import polars as pl

        rows = [
            {"run": run.name, "level": _level(run), **run.settings}
            | {fact: run.info.get(fact) for fact in FACTS}
            | {"folder": str(run.folder)}
            for run in self._runs
        ]
        front = ["run", "level", *self.settings]
        names = list(dict.fromkeys([*front, *FACTS, "folder"]))
        return pl.DataFrame(
            {name: _column([row.get(name) for row in rows]) for name in names}, strict=False, nan_to_null=False
        )

    @property
    def settings(self) -> list[str]:
        """The settings in which runs differ: the columns that frames have beside those of their tables."""
        return list(dict.fromkeys(name for run in self._runs for name in run.settings))

    def __getitem__(self, table: str) -> pl.LazyFrame:
        import polars as pl

        found = [(run, file) for run in self._runs if (file := run.folder / f"{table}.parquet").is_file()]
        if not found:
            has = sorted({file.stem for run in self._runs for file in run.folder.glob("*.parquet")})
            raise KeyError(f"no run has a table {table!r}; the tables are {', '.join(has)}")
        taken = {name for _, file in found for name in pl.read_parquet_schema(file)}
        types = {name: _column([run.settings.get(name) for run in self._runs]).dtype for name in self.settings}
        frames = []
        for run, file in found:
            said = [pl.lit(run.name).alias("run")]
            said += [
                pl.lit(run.settings.get(name), dtype=type_).alias(f"run_{name}" if name in taken else name)
                for name, type_ in types.items()
            ]
            frame = pl.scan_parquet(file)
            texts = [name for name, type_ in frame.collect_schema().items() if type_ == pl.Categorical]
            frames.append(frame.with_columns(pl.col(texts).cast(pl.String)).select(*said, pl.all()))
        return pl.concat(frames, how="diagonal")

    def __getattr__(self, table: str) -> pl.LazyFrame:
        if table not in TABLES:
            raise AttributeError(f"a scan has no {table!r}; the tables of results are {', '.join(TABLES)}")
        return self[table]

    def where(self, **settings: Setting) -> Scan:
        """The runs with these settings, such as `where(transport="dcpim", load=0.6)`; `level` is one, too."""
        unknown = [name for name in settings if name not in (*self.settings, "level", "run")]
        if unknown:
            raise KeyError(f"runs do not differ in {unknown[0]!r}, but in {', '.join(self.settings) or 'nothing'}")

        def fits(run: _Run) -> bool:
            own = {**run.settings, "level": _level(run), "run": run.name}
            return all(own.get(name) == value for name, value in settings.items())

        return Scan(filter(fits, self._runs))

    def results(self) -> list[Result]:
        """The results, read from disk."""
        found = []
        for run in self._runs:
            result = Result.load(run.folder)
            result.name = run.name
            found.append(result)
        return found

    def comparison(self) -> Comparison:
        """All runs side by side, as `clearway.compare` has them; runs that differ in the seed alone are one row."""
        from clearway.comparisons.comparison import Comparison

        return Comparison(self.results())

    def report(self, path: str | Path) -> Path:
        """Writes one report page on all runs."""
        return self.comparison().report(path)

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        return f"Scan({len(self)} runs, which differ in {', '.join(self.settings) or 'nothing'})"


def scan(places: str | Path | Iterable[str | Path]) -> Scan:
    """The results of many runs: all in and below a folder, or those that a pattern such as `"out/*/store"` finds.

    It takes the folders that `Result.save`, `clearway run`, `compare` and `sweep` write. A run is named by the settings
    in which it differs from the others, and seeds come last. Needs `pip install clearway[polars]`. See `Scan`.
    """
    try:
        import polars  # noqa: F401
    except ImportError:
        raise ImportError("cw.scan gives frames of polars: pip install clearway[polars]") from None
    given = [places] if isinstance(places, str | Path) else list(places)
    folders = list(dict.fromkeys(folder for place in given for folder in _folders(place)))
    if not folders:
        raise ResultError(f"{', '.join(map(str, given))}: no result of a run is there, and none below")
    heads = [read_head(folder) for folder in folders]
    settings = _differing([_flat(tomllib.loads(toml)) | {"seed": info["seed"]} for info, toml in heads])
    names = _names([str(info["name"]) for info, _ in heads], settings, folders)
    runs = [
        _Run(name, folder, own, info)
        for name, folder, own, (info, _) in zip(names, folders, settings, heads, strict=True)
    ]
    columns = dict.fromkeys(name for own in settings for name in own)
    # By settings: stores have folders by digest.
    return Scan(sorted(runs, key=lambda run: [_place(run.settings.get(name)) for name in columns]))


def _place(value: Setting | None) -> tuple[bool, bool, Setting]:
    """Where a value stands among values of several types: numbers, then text, then none."""
    return value is None, isinstance(value, str), 0 if value is None else value


def _folders(place: str | Path) -> Iterator[Path]:
    """The folders of results in and below a place; not those that a process is writing."""
    found = [Path(name) for name in sorted(glob(str(place)))] if has_magic(str(place)) else [Path(place)]
    for root in found:
        for file in sorted(root.rglob("run.json")):
            if not any(part.startswith(".") for part in file.relative_to(root).parts):
                yield file.parent


def _level(run: _Run) -> str:
    return str(run.info.get("level", "packet"))


def _flat(read: Any, key: str = "") -> dict[str, Setting]:
    """The settings of a scenario by dotted key. A scheme's name is a setting, and its own settings are below it."""
    if isinstance(read, Mapping):
        found: dict[str, Setting] = {}
        if key.rpartition(".")[2] in SCHEMES and len(read) == 1:
            found[key] = str(next(iter(read)))
        for name, value in read.items():
            found |= _flat(value, f"{key}.{name}" if key else str(name))
        return found
    if isinstance(read, list):
        return {name: of for at, value in enumerate(read) for name, of in _flat(value, f"{key}.{at}").items()}
    return {key: read if isinstance(read, str | int | float | bool) else str(read)}


def _differing(every: list[dict[str, Setting]]) -> list[dict[str, Setting]]:
    """Of each run's settings those in which it differs from another that has them, by the shortest clear name."""
    values: dict[str, set[Setting]] = {}
    for own in every:
        for key, value in own.items():
            values.setdefault(key, set()).add(value)
    differ = [key for key, found in values.items() if len(found) > 1 and key != "name" and not _is_digest(key)]
    last = [key.rpartition(".")[2] for key in differ]
    short = {key: name if last.count(name) == 1 else key for key, name in zip(differ, last)}
    ordered = sorted(differ, key=lambda key: key == "seed")
    return [{short[key]: own[key] for key in ordered if key in own} for own in every]


def _is_digest(key: str) -> bool:
    return key.endswith(".digest")


def _names(given: list[str], settings: list[dict[str, Setting]], folders: list[Path]) -> list[str]:
    """A name for each run: that of its result where no other has it, or its settings, or its folder."""
    if len(set(given)) == len(given):
        return given
    names = []
    for name, own in zip(given, settings):
        parts = [value if key in SCHEMES else f"{key} {value}" for key, value in own.items()]
        names.append(", ".join(map(str, parts)) or name)
    if len(set(names)) == len(names):
        return names
    return [f"{name} ({folder})" for name, folder in zip(names, folders)]


def _column(values: list[Any]) -> pl.Series:
    """Values in one type: numbers if all are, else text."""
    import polars as pl

    known = {type(value) for value in values if value is not None}
    if len(known) > 1 and not known <= {int, float}:
        values = [None if value is None else str(value) for value in values]
    return pl.Series(values, strict=False)
