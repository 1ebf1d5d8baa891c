"""The operator's question: which transport for this cluster, with which buffers, and what happens when a link fails?

A search within a budget of time, in four steps. Each is a sweep on one store, so that an interrupted search resumes.

1. Every transport with one seed. If the runs would not fit the budget, the traffic is shortened.
2. The best of them with several seeds, the same for all.
3. The first three with a link that is dead, and with one that is slow.
4. The first two with smaller and larger buffers.

Differences are ratios, paired by seed, with Student's 95% t-interval of their logarithms. A difference whose interval
includes none is said to be none.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clearway import _core
from clearway.comparisons.all_schemes import Contender, chosen, contenders
from clearway.errors import ScenarioError
from clearway.reports import html, marked
from clearway.results.confidence import of_seeds
from clearway.results.times import time_of
from clearway.running.run import _cores
from clearway.scenarios.listings import network
from clearway.scenarios.scenario import Scenario
from clearway.sweeps import Point, Sweep

# The part of the budget that a step may use of what the steps before it have left.
SHARES = {"screen": 0.4, "seeds": 0.5, "failures": 0.5, "buffers": 0.9}
# Contenders that go on to the second step: those within this factor of the best, with a least and a greatest number.
NEAR, FEWEST, MOST = 1.2, 3, 12
SEEDS_LEAST = 3
# With a wider interval a difference is unknown, and not small.
VAGUE = 0.1
BUFFERS = (0.25, 0.5, 2.0, 4.0)
SCALES = (1.0, 0.5, 0.25, 0.1, 0.05)
ITERATION, MEAN = "iteration us", "all mean"
OTHER = "as it is"


@dataclass(frozen=True)
class Difference:
    """How much longer one takes than another, as a share, with its interval; and in how many seeds it is shorter."""

    share: float
    low: float
    high: float
    better: int
    seeds: int

    @property
    def clear(self) -> bool:
        """Whether the interval excludes no difference."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        if max(abs(self.share), abs(self.high)) >= 1:
            ends = "" if math.isnan(self.low) else f" ({1 + self.low:.2g} to {1 + self.high:.2g})"
            return f"{1 + self.share:.2g} times{ends}"
        low, high = sorted((abs(self.low), abs(self.high)))
        ends = "" if math.isnan(low) else f" ({_percent(low)} to {_percent(high)})" if self.clear else ""
        return f"{_percent(abs(self.share))}{ends or ('' if math.isnan(high) else f' (up to {_percent(high)})')}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.095 else f"{share:.1%}"


def difference(these: pd.Series[float], those: pd.Series[float]) -> Difference:
    """The difference of two series by seed.

    >>> one = pd.Series({1: 1.1, 2: 1.1, 3: 1.1})
    >>> str(difference(one, pd.Series({1: 1.0, 2: 1.0, 3: 1.0})))
    '10% (10% to 10%)'
    """
    both = pd.concat([these, those], axis=1).dropna()
    logs = np.log(both.iloc[:, 0].to_numpy(float) / both.iloc[:, 1].to_numpy(float))
    low, high = of_seeds(logs)
    share = math.expm1(float(logs.mean())) if len(logs) else math.nan
    return Difference(share, math.expm1(low), math.expm1(high), int((logs < 0).sum()), len(logs))


@dataclass
class _Search:
    """The runs of a search, and its remaining time."""

    base: Scenario
    folder: Path
    end: float
    workers: int
    progress: bool | None
    rows: list[pd.DataFrame] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    cost: float = math.inf
    """Seconds of one worker for a run, by the last step."""

    def left(self) -> float:
        """Seconds that are left."""
        return self.end - time.monotonic()

    def fit(self, share: float) -> int:
        """How many runs fit into a share of the time that is left."""
        return int(max(0.0, self.left()) * share * self.workers / self.cost) if self.cost else 10**6

    def run(self, wanted: Iterable[tuple[Contender, int, str, Mapping[str, Any]]]) -> None:
        """Runs contenders with a seed and changed keys, under a label of the change. Some may be unable to run."""
        points = []
        for one, seed, change, keys in wanted:
            try:
                scenario = self.base.with_({**keys_of(one, self.base), **keys}, seed=seed)
                scenario.check()
                points.append(Point(scenario, {"scheme": one.name, "seed": seed, "change": change}))
            except ScenarioError as error:
                name = one.name if change == OTHER else f"{one.name}, {change}"
                self.absent[name] = f"{error.key}: {error.message}"
        if not points:
            return
        begun = time.monotonic()
        swept = Sweep(points, self.folder).run(workers=self.workers, progress=self.progress)
        if swept.interrupted:
            raise KeyboardInterrupt
        for name, why in swept.failed.items():
            self.absent[name] = why
        table = swept.table()
        table = table[table["status"].isin(("done", "audit"))]
        fresh = float(table["wall seconds"].mean()) if len(table) else 0.0
        self.cost = max((time.monotonic() - begun) * self.workers / len(points), fresh, 1e-3)
        self.rows.append(table)

    def table(self) -> pd.DataFrame:
        """All rows so far, each run once."""
        if not self.rows:
            return pd.DataFrame()
        every = pd.concat(self.rows)
        return every.drop_duplicates(["scheme", "seed", "change"])


def keys_of(one: Contender, base: Scenario) -> dict[str, Any]:
    """The keys of a contender over a scenario, whose own settings of a scheme and of buffers are kept."""
    written = base.to_dict()
    keys = {key: value for key, value in one.keys.items() if not key.startswith("traffic.")}
    if "buffer" in written.get("switch", {}):
        keys.pop("switch.buffer", None)
    return keys


def advise(
    scenario: Scenario,
    folder: str | Path,
    *,
    budget: float = 600.0,
    seeds: int = 10,
    only: Sequence[str] = (),
    buffers: Sequence[str] = (),
    workers: int | None = None,
    progress: bool | None = None,
) -> Advice:
    """Compares transports on a cluster, described by a scenario, within `budget` seconds, and says which to choose.

    `only` names the transports to compare; all that Clearway compares otherwise. `seeds` is the most seeds of a
    transport. `buffers` are sizes to try instead of a quarter to four times the present one. The runs are kept in
    `folder`; the same call resumes.
    """
    began = time.monotonic()
    who = chosen(contenders(), only, "a transport that can be compared")
    for size in buffers:
        _bytes_of(size)
    base, setting, cost = _fitting(scenario, len(who), budget * SHARES["screen"], workers or _cores())
    search = _Search(base, Path(folder), began + budget, workers or _cores(), progress, cost=cost)
    first = who[: max(FEWEST, search.fit(SHARES["screen"]))]
    search.absent |= {
        one.name: "budget: not compared; a larger one would have time for it" for one in who[len(first) :]
    }
    search.run((one, 1, OTHER, {}) for one in first)
    goal = ITERATION if ITERATION in search.table() and not base.to_dict().get("traffic") else MEAN
    if not len(search.table()):
        raise ValueError("; ".join(f"{name} cannot run: {why}" for name, why in search.absent.items()))
    kept = _nearest(search.table(), goal, who)
    count = min(seeds, max(SEEDS_LEAST, 1 + search.fit(SHARES["seeds"]) // max(1, len(kept))))
    search.run((one, seed, OTHER, {}) for one in kept for seed in range(2, count + 1))
    order = _order(search.table(), goal, kept)
    few = min(count, 5)
    changes = _failures(base)
    _changed(search, order[:3], changes, few, SHARES["failures"])
    sizes = _buffers(base, order[0], buffers)
    _changed(search, order[:2], sizes, few, SHARES["buffers"])
    table = search.table()
    setting += f"; {len(table):,} runs, {table['wall seconds'].sum():,.0f} s of simulation"
    setting += f"; Clearway {_core.__version__} ({_core.COMMIT})"
    return Advice(table, goal, [one.name for one in order], list(changes), list(sizes), search.absent, setting)


def _changed(
    search: _Search, order: Sequence[Contender], changes: Mapping[str, Mapping[str, Any]], seeds: int, share: float
) -> None:
    """Runs contenders under changes, with as many seeds as fit; none if not even `SEEDS_LEAST` do."""
    runs = max(1, len(order) * len(changes))
    count = min(seeds, search.fit(share) // runs)
    if count >= min(SEEDS_LEAST, seeds):
        search.run((one, seed, name, keys) for one in order for name, keys in changes.items()
                   for seed in range(1, count + 1))  # fmt: skip


def _fitting(scenario: Scenario, count: int, seconds: float, workers: int) -> tuple[Scenario, str, float]:
    """The scenario at a length at which this many runs fit into the time, that in words, and the seconds of a run.

    Every run simulates every packet: flow level has no transports, and errors of single links are larger than most
    differences between transports (docs/links-measured.md). Jobs run whole, with repetitions skipped, which changes no
    result.
    """
    if "job" in scenario.to_dict() and scenario.to_dict()["job"]:
        base = scenario.with_(fast_forward="exact")
        cost = base.with_(fast_forward="off").forecast(probe_seconds=0.5).cpu_seconds or 0.0
        return base, "every packet, with exact repetitions skipped", cost
    cost = scenario.forecast(probe_seconds=0.5).cpu_seconds or 0.0
    for scale in SCALES:
        if cost * scale * count <= seconds * workers or scale == SCALES[-1]:
            break
    words = "every packet" if scale == 1 else f"every packet of {scale:.0%} of the traffic"
    return _shorter(scenario, scale), words, cost * scale


def _shorter(scenario: Scenario, scale: float) -> Scenario:
    """The scenario with less traffic: fewer flows, or arrivals for a shorter time."""
    keys: dict[str, Any] = {}
    for place, traffic in enumerate(scenario.to_dict().get("traffic", [])):
        if scale < 1 and "flows" in traffic:
            keys[f"traffic.{place}.flows"] = max(100, int(traffic["flows"] * scale))
        elif scale < 1 and "duration" in traffic:
            keys[f"traffic.{place}.duration"] = f"{time_of(traffic['duration']) * scale / 1e6:.3f}us"
    return scenario.with_(keys) if keys else scenario


def _value(table: pd.DataFrame, name: str, goal: str, change: str = OTHER) -> pd.Series[float]:
    """The numbers of a contender by seed. A run with unfinished flows has none."""
    mine = table[(table["scheme"] == name) & (table["change"] == change)]
    values = mine[goal].astype(float).where(mine["unfinished"] == 0)
    return pd.Series(values.to_numpy(), index=mine["seed"].to_numpy())


def _nearest(table: pd.DataFrame, goal: str, who: Sequence[Contender]) -> list[Contender]:
    means = {one.name: _value(table, one.name, goal).mean() for one in who}
    known = [one for one in who if not math.isnan(means[one.name])]
    order = sorted(known, key=lambda one: means[one.name])
    near = [one for one in order if means[one.name] <= NEAR * means[order[0].name]]
    return order[: min(MOST, max(FEWEST, len(near)))]


def _order(table: pd.DataFrame, goal: str, who: Sequence[Contender]) -> list[Contender]:
    means = {one.name: np.exp(np.log(_value(table, one.name, goal)).mean()) for one in who}
    return sorted((one for one in who if not math.isnan(means[one.name])), key=lambda one: float(means[one.name]))


def _failures(base: Scenario) -> dict[str, dict[str, Any]]:
    """A dead link between switches, and a slow one; none without such links."""
    links = [link for link in network(base).links() if link["tier"] == "up"]
    if not links:
        return {}
    ends, rate = [links[0]["from_node"], links[0]["to_node"]], links[0]["rate_bps"]
    where = f"{ends[0]}-{ends[1]}"
    return {
        # Routing knows of it: a run may be shorter than the time until it does.
        f"{where} dead": {"failure": [{"link": ends, "at": "1us"}], "reroute_delay": "1us"},
        f"{where} at a tenth of its rate": {"failure": [{"link": ends, "at": "1us", "rate": f"{rate // 10}bps"}]},
    }


def _buffers(base: Scenario, best: Contender, sizes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Other sizes of a switch's buffer, in the form that the scenario or the transport has it, smallest first."""
    resolved = base.with_(keys_of(best, base)).to_dict()
    buffer = resolved.get("switch", {}).get("buffer") or {"per_port": {"bytes": "500KB"}}
    [(kind, of)] = buffer.items()
    now = _bytes_of(of["bytes"])
    wanted = {text: _bytes_of(text) for text in sizes} or {
        _short(int(now * times)): int(now * times) for times in BUFFERS
    }
    words = "per port" if kind == "per_port" else "per switch"
    return {
        f"{text} {words}": {"switch.buffer": {kind: {**of, "bytes": f"{size}B"}}}
        for text, size in sorted(wanted.items(), key=lambda one: one[1])
    }


def _bytes_of(text: str) -> int:
    """A size such as `500KB` or `1.5MiB` in bytes."""
    found = re.fullmatch(r"([0-9.]+) ?([KMG]i?)?B", text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no size; write it like 500KB or 16MiB")
    step = 1024 if (found[2] or "").endswith("i") else 1000
    return int(float(found[1]) * step ** ("KMG".index(found[2][0]) + 1 if found[2] else 0))


def _short(count: int) -> str:
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if count >= scale:
            return f"{count / scale:g} {unit}"
    return f"{count} B"


@dataclass(frozen=True)
class Advice:
    """The result of a search."""

    runs: pd.DataFrame
    """One row per run: scheme, seed, change, and the columns of a comparison."""
    goal: str
    """The column that is compared."""
    order: Sequence[str]
    """The transports that were compared over seeds, the best first."""
    failures: Sequence[str]
    buffers: Sequence[str]
    absent: Mapping[str, str]
    """Transports, and runs, that could not be carried out, and why."""
    setting: str

    def by_seed(self, name: str, change: str = OTHER) -> pd.Series[float]:
        """The numbers of a transport by seed; NaN for a run with unfinished flows."""
        return _value(self.runs, name, self.goal, change)

    @property
    def ok(self) -> bool:
        """Whether the audits of the runs that were compared over seeds found no faults."""
        return bool((self.runs["status"][self.runs["scheme"].isin(self.order)] == "done").all())

    @property
    def noun(self) -> str:
        """The compared number in words."""
        return "iteration time" if self.goal == ITERATION else "mean slowdown"

    def said(self) -> list[str]:
        """The advice, in ranked sentences with their uncertainty."""
        best, seeds = self.order[0], self.by_seed(self.order[0])
        low, high = of_seeds(seeds.dropna().to_numpy(float))
        unit = " us" if self.goal == ITERATION else ""
        said = [
            f"{best} has the lowest {self.noun}: {seeds.mean():,.4g}{unit} "
            f"({low:,.4g} to {high:,.4g}) over {len(seeds)} seeds."
        ]
        for name in self.order[1:]:
            of = difference(seeds, self.by_seed(name))
            if of.clear:
                said.append(f"{best} beats {name} by {of} of its {self.noun}, in {of.better} of {of.seeds} seeds.")
            elif max(-of.low, of.high) > VAGUE:
                said.append(
                    f"{name} varies too much to be ranked: over {of.seeds} seeds, {best} takes between {-of.low:.0%} "
                    f"less and {of.high:.0%} more."
                )
            else:
                said.append(
                    f"{name} is as good as {best}: over {of.seeds} seeds, a difference of {of} may be due to chance."
                )
        said += self._of_failures() + self._of_buffers() + self._of_others()
        return said

    def _of_failures(self) -> list[str]:
        said = []
        for change in self.failures:
            parts, values = [], {}
            for name in self.order[:3]:
                now = self.by_seed(name, change)
                if not len(now):
                    continue
                if now.isna().any():
                    parts.append(f"{name} leaves flows unfinished in {int(now.isna().sum())} of {len(now)} seeds")
                    continue
                values[name] = now
                parts.append(f"{name} {_changed_by(difference(now, self.by_seed(name)))}")
            if not parts:
                continue
            first = min(values, key=lambda name: float(values[name].mean())) if values else ""
            end = f"; {first} is then the best" if first and first != self.order[0] else ""
            said.append(f"With {change}: {', '.join(parts)}{end}.")
        return said

    def _of_buffers(self) -> list[str]:
        said = []
        for name in self.order[:2]:
            found = {change: difference(self.by_seed(name, change), self.by_seed(name)) for change in self.buffers
                     if len(self.by_seed(name, change).dropna()) > 1}  # fmt: skip
            if not found:
                continue
            worse = [f"{change} costs {of}" for change, of in found.items() if of.low > 0]
            gains = [f"{change} gains {of}" for change, of in found.items() if of.high < 0]
            same = [change for change, of in found.items() if not of.clear]
            makes = "make" if len(same) > 1 else "makes"
            parts = worse + gains + ([f"{', '.join(same)} {makes} no clear difference"] if same else [])
            said.append(f"Buffers under {name}, compared with the present ones: {'; '.join(parts)}.")
        return said

    def _of_others(self) -> list[str]:
        one = self.runs[(self.runs["seed"] == 1) & (self.runs["change"] == OTHER)]
        best = float(self.by_seed(self.order[0]).get(1, math.nan))
        rest = [(str(row["scheme"]), row) for _, row in one.iterrows() if row["scheme"] not in self.order]
        far = [f"{name} ({row[self.goal] / best - 1:+.0%})" for name, row in rest if row["unfinished"] == 0]
        left = [name for name, row in rest if row["unfinished"]]
        said = [f"Behind by more with the first seed, and not compared further: {', '.join(far)}."] if far else []
        return said + ([f"Left flows unfinished: {', '.join(left)}."] if left else [])

    def table(self) -> pd.DataFrame:
        """One row per transport that was compared over seeds: the number with its interval, and the difference to the
        best.
        """
        rows = []
        for name in self.order:
            of = self.by_seed(name).dropna()
            low, high = of_seeds(of.to_numpy(float))
            mine = self.runs[(self.runs["scheme"] == name) & (self.runs["change"] == OTHER)]
            row = {"transport": name, "seeds": len(of), self.goal: of.mean(), f"{self.goal} low": low,
                   f"{self.goal} high": high}  # fmt: skip
            more = {column: mine[column].mean() for column in ("short p99", "long mean") if self.goal == MEAN}
            rows.append(row | more)
        table = pd.DataFrame(rows).set_index("transport")
        table.attrs["interval"] = "95% t-interval over seeds"
        return table

    def markdown(self) -> str:
        """The sentences and the table, as a page has them."""
        lines = [f"{number}. {one}" for number, one in enumerate(self.said(), 1)]
        table = self.table()
        rows = [[str(name), *(_number(value) for value in row)] for name, row in zip(table.index, table.to_numpy())]
        lines += ["", *marked.table(["transport", *map(str, table.columns)], rows), "", f"{self.setting}."]
        if missing := marked.absent(self.absent):
            lines += ["", *missing]
        return "\n".join(lines) + "\n"

    def write(self, page: str | Path) -> Path:
        """Puts them into a page in Markdown, between the marks `advice`."""
        return marked.put(page, "advice", self.markdown())

    def report(self, path: str | Path, scenario: Scenario) -> Path:
        """Writes a page to hand on."""
        table = self.table()
        rows = [[str(name), *(_number(value) for value in row)] for name, row in zip(table.index, table.to_numpy())]
        absent = [[name, why] for name, why in self.absent.items()]
        parts = [
            f"<h1>{escape(scenario.name or 'This cluster')}: which transport?</h1>",
            f"<p class=subtitle>{escape(self.setting)}</p>",
            html.section("Answer", "<ol>" + "".join(f"<li>{escape(one)}" for one in self.said()) + "</ol>"),
            html.section("Compared over seeds", html.table(["transport", *map(str, table.columns)], rows, text=1)),
            html.section("Could not run", html.table(["", "why"], absent, text=2) if absent else ""),
            html.section("Method", "".join(f"<p>{escape(part)}</p>" for part in (__doc__ or "").split("\n\n"))),
            html.section("Scenario", f"<pre>{escape(scenario.to_toml())}</pre>"),
        ]
        return html.write("Which transport?", parts, Path(path), "")


def _changed_by(of: Difference) -> str:
    if not of.clear:
        return "shows no clear difference"
    if "times" in str(of):
        return f"takes {of} as long"
    return f"takes {of} {'longer' if of.share > 0 else 'less'}"


def _number(value: float) -> str:
    return (
        "–" if value != value else f"{value:,.0f}" if float(value).is_integer() or value >= 10_000 else f"{value:.4g}"
    )


def seconds_of(text: str) -> float:
    """A budget: `90s`, `10m`, `2h`, or seconds.

    >>> seconds_of("10m"), seconds_of("1.5h"), seconds_of("90")
    (600.0, 5400.0, 90.0)
    """
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        seconds = float(number) * units[unit]
    except ValueError:
        seconds = math.nan
    if not 1 <= seconds <= 1e6:
        raise ValueError(f"--budget {text}: write a time such as 90s, 10m or 2h")
    return seconds
