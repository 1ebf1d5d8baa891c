"""Shared by the figures of all papers: runs that are not repeated, the results of a figure, and drawing."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes

import clearway as cw
from clearway.errors import PapersMissing
from clearway.files.places import slug
from clearway.papers import slices
from clearway.reports.plots import STYLE, Picture

Keys = Mapping[str, Any]
Kind = Literal["hardware", "measurement", "hosts", "authors' run", "paper", "closed form", "linear program"]


def reference(folder: Path, file: str) -> Path:
    """A file of the folder `reference` of a paper: data from its authors, which the wheel of Clearway does not carry.

    Raises `PapersMissing` if it is not installed.
    """
    path = folder / "reference" / file
    if not path.is_file():
        raise PapersMissing(
            f"the data of the authors of {folder.name} is not installed: pip install clearway[papers], or "
            "`pip install ./python/papers` in a clone of the repository"
        )
    return path


@dataclass
class Held:
    """A scheme's results beside numbers from outside this project.

    `rows` has a row a number: `bucket` (which flows: "vulnerable, up to 1 KB"; "all"), `statistic` ("mean FCT, us"),
    `ours`, `theirs`, and `within`, how far ours may be off either way as a share of theirs, chosen before the run. Each
    row is a check of the figure.
    """

    scheme: str
    """The name in the catalogue, with flow control and sharing where they matter: "dcqcn over pfc"."""
    against: str
    """The source of the numbers: "its authors' ns-3, 50,095 flows of web server sizes"."""
    kind: Kind
    rows: pd.DataFrame
    seeds: str = "1"
    """The seeds of our runs: "1", "1 to 3"."""

    COLUMNS = ("bucket", "statistic", "ours", "theirs", "within")

    @property
    def error(self) -> pd.Series[float]:
        """The deviation of ours, as a share of theirs: negative where ours is less."""
        return self.rows["ours"].astype(float) / self.rows["theirs"].astype(float) - 1

    @property
    def ok(self) -> list[bool]:
        """For each row, whether ours is within the allowed deviation."""
        return [bool(abs(off) <= within) for off, within in zip(self.error, self.rows["within"].astype(float))]

    @property
    def checks(self) -> dict[str, bool]:
        """One check for each row."""
        found = {}
        row: Any
        for row, off, ok in zip(self.rows.itertuples(), self.error, self.ok):
            numbers = f"{row.ours:.4g} for {row.theirs:.4g} ({off:+.1%}, within {100 * row.within:.3g}%)"
            found[f"{self.scheme}, {row.bucket}, {row.statistic}: {numbers}"] = ok
        return found


@dataclass
class Shown:
    """The result of a figure or table."""

    table: pd.DataFrame
    checks: dict[str, bool] = field(default_factory=dict)
    picture: Picture | None = None
    held: list[Held] = field(default_factory=list)
    """The comparisons that become part of docs/accuracy.md."""
    note: str = ""
    """Of a figure for which the paper gives no number: what its checks hold it against. The page says it."""

    def __post_init__(self) -> None:
        for held in self.held:
            self.checks |= held.checks


Figures = Mapping[str, Callable[[], Shown]]

telling: bool | None = None
"""Whether runs print their progress: None only if standard error is a terminal, True always (the command)."""


@dataclass
class Ran:
    """The runs of a figure: their digests, seeds and times, including runs that were there already."""

    behind: dict[tuple[str, str], str] = field(default_factory=dict)
    """The digest of each run, by its name and a digest of its scenario with all defaults."""
    asked: dict[str, cw.Scenario] = field(default_factory=dict)
    """The first scenario of each combination of schemes."""
    digests: list[str] = field(default_factory=list)
    seeds: set[int] = field(default_factory=set)
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0

    def add(self, info: Mapping[str, Any], name: str, scenario: str) -> None:
        """Adds a run, by the facts that its result keeps, its name and its scenario as TOML."""
        digest = str(info.get("digest"))
        self.behind[name, hashlib.blake2b(scenario.encode(), digest_size=8).hexdigest()] = digest
        if digest in self.digests:
            return
        self.digests.append(digest)
        if "seed" in info:
            self.seeds.add(int(info["seed"]))
        self.cpu_seconds += float(info.get("cpu_seconds", 0.0))
        self.wall_seconds += float(info.get("wall_seconds", 0.0))

    def include(self, other: Ran) -> None:
        """Adds the runs of a part that another process has made."""
        self.behind |= other.behind
        self.digests += [digest for digest in other.digests if digest not in self.digests]
        self.seeds |= other.seeds
        self.cpu_seconds += other.cpu_seconds
        self.wall_seconds += other.wall_seconds

    @property
    def digest(self) -> str:
        """One digest for all runs, whatever their order; empty if there are none."""
        if not self.digests:
            return ""
        return hashlib.blake2b("\n".join(sorted(self.digests)).encode(), digest_size=8).hexdigest()


_listening: list[Ran] = []


@contextlib.contextmanager
def listened() -> Iterator[Ran]:
    """Collects the runs that figures make in this context."""
    ran = Ran()
    _listening.append(ran)
    try:
        yield ran
    finally:
        _listening.remove(ran)


def heard(info: Mapping[str, Any], name: str, scenario: str) -> None:
    """Reports a run that a figure has made or found, with its name and its scenario as TOML."""
    for ran in _listening:
        ran.add(info, name, scenario)


def heard_of(part: Ran) -> None:
    """Reports the runs that another process has made."""
    for ran in _listening:
        ran.include(part)


def run(scenario: Path, name: str, keys: Keys, out: Path, threads: int | None = None) -> cw.Result:
    """The result of a scenario file with some keys set. Runs that this build has finished in `out` are kept."""
    wanted = cw.Scenario.load(scenario).with_({"name": f"{scenario.stem} {name}", **keys})
    return simulated(wanted, threads, out / "runs")


def simulated(wanted: cw.Scenario, threads: int | None = None, folder: Path | None = None) -> cw.Result:
    """The result of a scenario; runs that this build has finished in the folder are kept."""
    if (part := slices.current()) is not None:
        return part.run(wanted)
    for ran in _listening:
        ran.asked.setdefault(slices.schemes(wanted), wanted)
    if folder is None:
        result = cw.run(wanted, threads=threads, progress=False)
    else:
        [result] = cw.compare(wanted, threads=threads, folder=folder, keep=True, progress=telling).results
    if result.interrupted:
        raise KeyboardInterrupt
    for finding in result.info["audit"]:
        if not finding["ok"]:
            raise ValueError(f"{result.name}: audit: {finding['name']}: {finding['detail']}")
    heard(result.info, result.name, result.scenario_toml)
    return result


def sustain(wanted: cw.Scenario, out: Path, **search: Any) -> cw.Sustained:
    """The highest load that a scenario sustains. Runs that this build has finished in `out` are kept."""
    if (part := slices.current()) is not None:
        part.run(wanted)
        # A search over runs that are cut finds nothing of meaning.
        raise slices.Enough
    for ran in _listening:
        ran.asked.setdefault(slices.schemes(wanted), wanted)
    found = cw.sustain(wanted, folder=out / "runs", keep=True, progress=telling, **search)
    if found.interrupted:
        raise KeyboardInterrupt
    for _, row in found.runs.iterrows():
        of = f"{wanted.name}, load {row['load']:g}, seed {row['seed']}"
        if not row["audit"]:
            raise ValueError(f"{of}: the audit of this run found a fault; its run.json says which")
        kept = out / "runs" / slug(of)
        if (kept / "run.json").exists():
            heard(json.loads((kept / "run.json").read_text()), of, (kept / "scenario.toml").read_text())
    return found


def cell(table: pd.DataFrame, row: Any, column: Any) -> float:
    """A number of a table. The stubs of pandas say that a cell may be anything."""
    found: Any = table.loc[row, column]
    return float(found)


def row(table: pd.DataFrame, name: Any) -> pd.Series[float]:
    """The row of a table of numbers that has this name, or these names if its index has several levels."""
    found: Any = table.loc[name]
    return pd.Series(found)


def part(table: pd.DataFrame, name: Any) -> pd.DataFrame:
    """The rows of a table whose first levels have these names, without these levels."""
    found: Any = table.loc[name]
    return pd.DataFrame(found)


def by_size(
    ours: pd.Series[float],
    theirs: pd.Series[float],
    packets: pd.Series[int],
    buckets: Mapping[str, tuple[float, float]],
    mean: float,
    tail: float,
) -> pd.DataFrame:
    """Rows of `Held`: mean and 99th percentile of the slowdowns of the same flows, by their number of packets."""
    rows = []
    for bucket, (low, high) in buckets.items():
        chosen = packets.between(low, high)
        a, b = ours[chosen], theirs[chosen]
        rows.append((bucket, "mean slowdown", float(a.mean()), float(b.mean()), mean))
        rows.append((bucket, "p99 slowdown", float(a.quantile(0.99)), float(b.quantile(0.99)), tail))
    return pd.DataFrame(rows, columns=list(Held.COLUMNS))


def of_flows(result: cw.Result) -> pd.DataFrame:
    """Number, completion time and ideal time of each flow, in us, in the order of flow numbers."""
    flows = pd.DataFrame({name: pd.Series(result.flows[name]).astype(float) for name in ("flow", "fct_ps", "ideal_ps")})
    flows = flows.sort_values("flow").reset_index(drop=True)
    return flows.assign(fct_us=flows["fct_ps"] / 1e6, ideal_us=flows["ideal_ps"] / 1e6)


def draw(panels: Sequence[Callable[[Axes], object]], columns: int = 3, **shared: Any) -> Picture:
    """Panels in rows in the style of the package."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    with mpl.rc_context(STYLE):
        picture = Picture(figsize=(4.6 * columns, 2.9 * rows), layout="constrained")
        places = picture.subplots(rows, columns, squeeze=False, **shared).flat
        for axes, panel in zip(places, panels):
            panel(axes)
        for axes in list(places):
            axes.set_axis_off()
        return picture
