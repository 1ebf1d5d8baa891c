"""Comparisons: one scenario under several schemes, levels and seeds, side by side.

All runs are checked before the first begins. One that can't run is a row of the table that says why, and the others
run. Results are saved as soon as they exist.
"""

from __future__ import annotations

import hashlib
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from clearway import _core
from clearway.comparisons.unchanged import COLUMN, Unchanged, of_results, same_as
from clearway.defaults import ONE_RUN, Level
from clearway.errors import ScenarioError
from clearway.files.places import check_result, slug
from clearway.results.confidence import of_seeds
from clearway.results.read import check_whole, sum_of
from clearway.results.result import Result
from clearway.results.statistics import SIZES, slowdowns
from clearway.running.machines import tell
from clearway.running.run import _Listener, run
from clearway.running.sensitivity import offers
from clearway.scenarios.control import Control
from clearway.scenarios.scenario import Scenario, Scenarios, scenarios_of
from clearway.scenarios.settings import changed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import pandas as pd

    from clearway.reports.plots import Plots

Scheme: TypeAlias = str | Mapping[str, Any] | Control
"""A transport or flow control: its name, a table of its settings, or a control of one's own."""

REFUSED = "did not run"
"""Of a table: why a run has no numbers."""

TAIL = 100
"""With fewer flows, a 99th percentile is close to the slowest of them."""


class Comparison:
    """Several runs side by side: one row for each scheme, scenario and level, over one seed or several."""

    def __init__(self, results: Sequence[Result], refused: Mapping[str, str] | None = None) -> None:
        self.results = list(results)
        self.refused = dict(refused or {})
        """By name, the runs that could not run, and why."""

    def rows(self) -> dict[str, list[Result]]:
        """The results of each row of the table: one for each seed."""
        rows: dict[str, list[Result]] = {}
        for result in self.results:
            rows.setdefault(_row_name(result), []).append(result)
        return rows

    def table(self) -> pd.DataFrame:
        """A row for each scheme: slowdown of all, short, medium and long flows, goodput, losses and retransmissions;
        of training jobs the mean time of their iterations, and without other traffic no slowdown.

        With several seeds these are means over them, and `all mean low` and `all mean high` are the ends of a 95%
        t-interval over seeds, and so on. With one seed they say how far the flows of that run tell: see
        `Result.slowdown`.
        """
        import pandas as pd

        rows, table = self.rows(), pd.DataFrame([_row(result) for result in self.results])
        if self.results:
            table["run"] = [_row_name(result) for result in self.results]
            several = max(map(len, rows.values())) > 1
            table = _over_seeds(table) if several else table.set_index("run")
            if all(_has_jobs_alone(result) for result in self.results):
                table = table.drop(columns=[name for name in table if str(name).startswith(("all ", *_OF_SIZES))])
            table.attrs["interval"] = self._interval()
        refused = {name: why for name, why in self.refused.items() if name not in rows}
        if refused:
            lost = pd.DataFrame({REFUSED: refused}).rename_axis("run")
            table = pd.concat([table, lost]).rename_axis("run")
            table[REFUSED] = table[REFUSED].fillna("")
            table.attrs["interval"] = self._interval()
        same = same_as(self.unchanged)
        same = {_named(self.results, name): _named(self.results, of) for name, of in same.items()}
        return table.assign(**{COLUMN: [same.get(str(name), "") for name in table.index]}) if same else table

    def _interval(self) -> str:
        most = max((len(of) for of in self.rows().values()), default=0)
        return f"95% t-interval over {most} seeds" if most > 1 else ONE_RUN

    def differences(self) -> pd.DataFrame:
        """How far each row differs from the first, paired by seed: the mean of the differences of runs with one seed,
        and the ends of a 95% t-interval of that mean, as `all mean low` and `all mean high`. Empty with one seed.

        Schemes that are run with the same seeds have the same flows at the same times, so that their differences vary
        less than their numbers.
        """
        import pandas as pd

        rows = list(self.rows().items())
        found: list[dict[str, Any]] = []
        for name, results in rows[1:]:
            pairs = [(one, by) for one in results for by in rows[0][1] if one.info["seed"] == by.info["seed"]]
            if len(pairs) < 2:
                continue
            of_pairs = [(_row(one), _row(by)) for one, by in pairs]
            row: dict[str, Any] = {"run": f"{name} - {rows[0][0]}", "seeds": len(pairs)}
            for column in (name for name in of_pairs[0][0] if _has_interval(name)):
                differ = np.array([one[column] - by[column] for one, by in of_pairs if column in by], dtype=float)
                low, high = of_seeds(differ)
                row |= {column: float(differ.mean()), f"{column} low": low, f"{column} high": high}
            found.append(row)
        return pd.DataFrame(found).set_index("run") if found else pd.DataFrame()

    def said(self) -> list[str]:
        """Which settings each run used, how rows differ over seeds, and what the numbers can't tell."""
        said = [line for name, of in self.rows().items() for line in _settings(name, of[0])]
        main = ("iteration us", "all mean", "all p99")
        differences = self.differences().iterrows() if len(self.rows()) > 1 else ()
        for name, row in differences:
            parts = [
                f"{column} {row[column]:+.4g} ({row[f'{column} low']:+.4g}..{row[f'{column} high']:+.4g})"
                for column in row.index
                if column.endswith(main) and not np.isnan(row[column])
            ]
            said.append(
                f"{name}: {', '.join(parts)}: 95% t-interval of the differences, paired over {int(row['seeds'])} seeds"
            )
        offer = offers(self.results) if len(self.results) > 1 else ""
        return said + _short_tails(self.results) + ([offer] if offer else [])

    @property
    def unchanged(self) -> list[Unchanged]:
        """Runs over another transport, flow control or fabric that have the digest of an earlier run: every packet was
        the same. `str` of each says which, and the likely reason; the report says so, too.
        """
        return of_results(self.results)

    def __repr__(self) -> str:
        names = ", ".join(result.name for result in self.results)
        return f"Comparison({len(self.results)} runs: {names})\n{self.table().pipe(without_ends).to_string()}"

    def _repr_html_(self) -> str:
        html: str = self.table().pipe(without_ends).to_html()
        return html

    @property
    def plot(self) -> Plots:
        """Pictures of all runs together."""
        from clearway.reports.plots import Plots

        return Plots(self.results)

    def report(self, path: str | Path) -> Path:
        """Writes one report page on all runs."""
        from clearway.reports.report import write

        lost = [f"{name} did not run: {why}" for name, why in self.refused.items()]
        return write(self.results, Path(path), [*lost, *self.said()])


def without_ends(table: pd.DataFrame) -> pd.DataFrame:
    """A table without the columns of confidence intervals: those that end in `low` and `high` next to a column of the
    same name.
    """
    ends = [f"{column} {end}" for column in table.columns for end in ("low", "high")]
    return table.drop(columns=ends, errors="ignore")


def compare(
    scenarios: Scenarios,
    transports: Scheme | Sequence[Scheme] = (),
    flow_controls: Scheme | Sequence[Scheme] = (),
    *,
    levels: Level | Sequence[Level] = ("packet",),
    seeds: int | Iterable[int] = (),
    threads: int | None = None,
    progress: bool | _Listener | None = None,
    folder: str | Path | None = None,
    keep: bool = False,
) -> Comparison:
    """Runs each scenario with each transport and each flow control (by default its own), one after the other.

    A transport is a name, a table such as `{"dcpim": {"rounds": 3}}`, or a `clearway.Control` of your own. A name
    stands for the settings that the scenario has for this scheme, if it has any. With several `levels`, each of these
    runs at each level. With several `seeds`, or a number of them from the scenario's own on, each runs with each seed,
    and the table has means and intervals over seeds.

    All runs are checked before the first begins. A run that is impossible, or that fails, is in `refused` of the
    comparison with its reason; the others run. If none can run, the first reason is raised.

    With `folder`, each result is saved in a folder of its own there as soon as it exists. After Ctrl-C the comparison
    has the runs so far. With `keep`, the finished runs of an earlier comparison in `folder` are not repeated, provided
    that they are of the same scenario, the same content of its files and the same build of Clearway. A damaged one is
    repeated, with a warning.

    >>> import clearway as cw
    >>> tiny = cw.Scenario.load("examples/tiny.toml")
    >>> cw.compare([tiny, tiny.with_(name="slow", transport={"udp": {"rate": "10Gbps"}})]).table()["unfinished"]
    run
    tiny    0
    slow    0
    Name: unfinished, dtype: int64
    >>> cw.compare(tiny, ["dctcp", "udp"], seeds=3).table()["all mean"].round(1).tolist()
    [1.1, 1.0]
    """
    over, under, at = _list(transports), _list(flow_controls), _list(levels)
    planned, refused, errors = _checked(_variants(scenarios_of(scenarios), over, under, at, seeds))
    for one in planned if folder is not None else ():
        check_result(Path(folder) / slug(one.name))  # type: ignore[arg-type]
    results: list[Result] = []
    for one in planned:
        place = Path(folder) / slug(one.name) if folder is not None else None
        try:
            result = _ran(one, place, keep, threads, progress)
        except (ArithmeticError, AssertionError, LookupError, MemoryError, OSError, RuntimeError, TypeError) as error:
            # Of a control of one's own, of the machine, or of the disk. The other runs are not lost with it.
            refused[one.name] = f"{type(error).__name__}: {error}"
            errors.append(error)
            continue
        except ValueError as error:
            refused[one.name] = str(error)
            errors.append(error)
            continue
        results.append(result)
        if result.interrupted:
            break
    if errors and not results:
        raise errors[0]
    return Comparison(results, refused)


@dataclass(frozen=True)
class _Planned:
    name: str
    row: str
    scenario: Scenario
    level: Level


def _ran(
    one: _Planned, place: Path | None, keep: bool, threads: int | None, progress: bool | _Listener | None
) -> Result:
    """A run's result: one that was kept, or a new one."""
    result = _kept(place, one.scenario, one.level) if keep and place is not None else None
    if result is not None:
        return result
    files = _files_of(one.scenario) if place is not None else ""
    result = run(one.scenario, level=one.level, threads=threads, progress=progress, name=one.name)
    if place is not None:
        result.info["files"] = files
        result.save(place)
    return result


def _checked(
    variants: Iterable[tuple[str, str, Level, Any]],
) -> tuple[list[_Planned], dict[str, str], list[BaseException]]:
    """The runs that can run, and why the others can't."""
    planned, refused, errors = list[_Planned](), dict[str, str](), list[BaseException]()
    for name, row, level, make in variants:
        if row in refused:
            continue
        # A scheme that can't be read is an error at once, unlike one that can't run.
        scenario, why = make()
        try:
            if why is not None:
                raise why
            # Other seeds of a row have the same settings.
            if not any(one.row == row for one in planned):
                scenario.check(level=level)
            planned.append(_Planned(name, row, scenario, level))
        except ScenarioError as error:
            refused[row] = f"{error.key}: {error.message}" if error.key else error.message
            errors.append(error)
    return planned, refused, errors


def _kept(place: Path, scenario: Scenario, level: str) -> Result | None:
    """The result in a folder, if it is of exactly this run: of this code, scenario and content of its files."""
    if not (place / "run.json").exists():
        return None
    try:
        check_whole(place)
        result = Result.load(place)
    except ValueError as error:
        tell(f"warning: {error}; it is computed again")
        return None
    wanted = (_core.COMMIT, _core.SOURCE, _files_of(scenario), level, False)
    of = (*(result.info.get(key) for key in ("commit", "source", "files")), result.level, result.interrupted)
    return result if result.scenario_toml == scenario.to_toml() and of == wanted else None


def _files_of(scenario: Scenario) -> str:
    """A digest of the files that a scenario names, such as traces; empty if it names none."""
    sums = [f"{key} {sum_of(path)}" for key, path in scenario._files()]
    return hashlib.blake2b("\n".join(sums).encode(), digest_size=16).hexdigest() if sums else ""


def _variants(
    scenarios: Sequence[Scenario],
    transports: Sequence[Scheme],
    flow_controls: Sequence[Scheme],
    levels: Sequence[Level],
    seeds: int | Iterable[int],
) -> Iterator[tuple[str, str, Level, Any]]:
    """Name, row, level and maker of each run of a comparison. Names differ, and so do the folders named after them."""
    taken: set[str] = set()
    over: Sequence[Scheme | None] = transports or [None]
    under: Sequence[Scheme | None] = flow_controls or [None]
    if isinstance(seeds, int) and seeds < 1:
        raise ValueError(f"seeds={seeds}: must be at least 1, or a list of seeds")
    listed = None if isinstance(seeds, int) else list(seeds)
    if listed is not None and len(set(listed)) < len(listed):
        raise ValueError(f"seeds={listed}: the same seed twice gives the same run twice; name each once")
    for scenario, transport, flow_control, level in itertools.product(scenarios, over, under, levels):
        said = " over ".join(_name_of(scheme) for scheme in (transport, flow_control) if scheme is not None)
        at = f"{level} level" if len(levels) > 1 else ""
        parts = (scenario.name if len(scenarios) > 1 or not said else "", said, at)
        name = ", ".join(part for part in parts if part)
        number = 1
        while slug(row := name if number == 1 else f"{name} {number}") in taken:
            number += 1
        taken.add(slug(row))
        own = int(scenario.to_dict().get("seed", 1))
        drawn = list(range(own, own + seeds)) if isinstance(seeds, int) else listed or [own]
        for seed in drawn:
            of_seed = f"{row}, seed {seed}" if len(drawn) > 1 else row
            yield of_seed, row, level, _maker(scenario, transport, flow_control, seed if seed != own else None)


def _maker(scenario: Scenario, transport: Scheme | None, flow_control: Scheme | None, seed: int | None) -> Any:
    def make() -> tuple[Scenario, ScenarioError | None]:
        if transport is None and flow_control is None and seed is None:
            return scenario, None
        assert not isinstance(flow_control, Control), "a flow control is a name or a table"
        made = scenario.with_(transport=transport, flow_control=flow_control, seed=seed)
        if isinstance(transport, str) and transport not in made.transports:
            return made, ScenarioError(
                scenario.name,
                None,
                "transport",
                f"{transport} carries nothing, since every traffic class names a transport of its own; set those, such "
                "as traffic.0.transport, or delete them",
            )
        return made, None

    return make


def _list(given: Any) -> list[Any]:
    """One or several, as a list."""
    return [given] if isinstance(given, str | Mapping | Control) else list(given)


def _name_of(scheme: Scheme) -> str:
    """A scheme's name: of a table its only key, of a control its class."""
    if isinstance(scheme, str):
        return scheme
    return type(scheme).__name__ if isinstance(scheme, Control) else next(iter(scheme), "")


def _row_name(result: Result) -> str:
    """The row that a result belongs to: its name without its seed."""
    return result.name.replace(f", seed {result.info.get('seed')}", "")


def _named(results: Sequence[Result], name: str) -> str:
    return next((_row_name(result) for result in results if result.name == name), name)


_OF_SIZES = tuple(f"{size} " for size in SIZES)


def _has_interval(column: str) -> bool:
    """Whether a number of a run has an interval over seeds."""
    return column.endswith((" mean", " p99", "iteration us", "goodput Gbps"))


def _over_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """Means over the seeds of each row, with t-intervals."""
    import pandas as pd

    found = []
    for name, group in runs.groupby("run", sort=False):
        row: dict[str, Any] = {"run": name, "seeds": len(group)}
        ends: dict[str, float] = {}
        for column in without_ends(group.drop(columns="run")):
            values = group[column].astype(float).to_numpy()
            known = values[~np.isnan(values)]
            row[str(column)] = float(known.mean()) if len(known) else np.nan
            if _has_interval(str(column)):
                ends[f"{column} low"], ends[f"{column} high"] = of_seeds(known)
        found.append(row | ends)
    return pd.DataFrame(found).set_index("run")


def _has_jobs_alone(result: Result) -> bool:
    """Whether all traffic is of training jobs."""
    return "jobs" in result.tables and not tomllib.loads(result.scenario_toml).get("traffic")


def row_of(result: Result) -> dict[str, Any]:
    """A result's row of a comparison's table, but for its name."""
    return {key: value for key, value in _row(result).items() if key != "run"}


def _row(result: Result) -> dict[str, Any]:
    row: dict[str, Any] = {"run": result.name}
    if "jobs" in result.tables:
        times = result.jobs.to_pandas()
        names = list(dict.fromkeys(times["job"].astype(str)))
        for job in names:
            mine = times.loc[times["job"].astype(str) == job, "time_ps"].dropna().astype(float)
            row["iteration us" if len(names) == 1 else f"{job} iteration us"] = mine.mean() / 1e6
    sizes = slowdowns(result)
    for size in ("all", *SIZES):
        row[f"{size} mean"] = sizes[size]["mean"]
        row[f"{size} p99"] = sizes[size]["p99"]
    row["goodput Gbps"] = result.goodput() / 1e9
    row["unfinished"] = result.unfinished
    # Unknown rather than 0 if there are no packets.
    row["dropped"] = result.dropped if result.level == "packet" else float("nan")
    row["sent again"] = result.resent if result.level == "packet" else float("nan")
    for size, name, end in itertools.product(("all", *SIZES), ("mean", "p99"), ("low", "high")):
        row[f"{size} {name} {end}"] = sizes[size][f"{name} {end}"]
    return row


def _short_tails(results: Sequence[Result]) -> list[str]:
    """Which percentiles are of too few flows to be more than the slowest of them."""
    few: dict[str, int] = {}
    for result in results:
        if _has_jobs_alone(result):
            continue
        for size, of in slowdowns(result).items():
            if 0 < of["flows"] < TAIL:
                few[size] = min(int(of["flows"]), few.get(size, TAIL))
    if not few:
        return []
    said = ", ".join(f"{count:,} {size}" if size != "all" else f"{count:,} in all" for size, count in few.items())
    return [f"p99 of fewer than {TAIL} flows is close to the slowest of them: {said}; more flows would tell"]


def _settings(name: str, result: Result) -> list[str]:
    """The settings of a run's transport and flow control that are not their defaults, as a line."""
    read = tomllib.loads(result.scenario_toml)
    said = [
        f"{scheme}: {', '.join(f'{key} = {value}' for key, value in of.items())}" for scheme, of in changed(read) if of
    ]
    return [f"{name}: with the scenario's own settings of {'; of '.join(said)}"] if said else []
