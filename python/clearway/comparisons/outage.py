"""A plane or a link that dies in the middle of an all-reduce: what `clearway compare --all --work outage` runs.

Eight hosts with a link into each of four planes sum their buffers over four channels. At 200 us two of the planes die,
or one link between a leaf and a spine of one plane. Hosts see at once that a link of their own is dead, and learn of
others 50 us later, as switches do. The failure lasts.

*Least* is the least time that the links allow: a ring sends 2 (n - 1) / n of the buffer, with headers, over all planes
until the failure and over half of them afterwards. *Doubled* is t + 2 (T - t), for a failure at t and a job that takes
T without it: the time of a scheme that uses all working planes before and after. Schemes that keep a flow on one plane
use less than all links before the failure. So they may be slowed down less, or more: a hash decides how many flows are
on each of the remaining planes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from clearway import _core
from clearway.comparisons.all_schemes import Contender, chosen, contenders
from clearway.comparisons.seeds import label, over_seeds, said, seeds_from
from clearway.comparisons.training import Trained, as_deployed
from clearway.errors import ScenarioError
from clearway.reports import marked
from clearway.scenarios.scenario import Scenario
from clearway.sweeps import Point, Sweep

if TYPE_CHECKING:
    from clearway.comparisons.unchanged import Unchanged
    from clearway.scenarios.scenario import Value

FILE = Path(__file__).parent / "outage.toml"
AT_US = 200
REROUTE = "50us"
DEAD: dict[str, list[dict[str, Any]]] = {
    "whole": [],
    # The leaves of planes 2 and 3: half of what each host has.
    "planes": [{"at": f"{AT_US}us", "switch": f"leaf{leaf}"} for leaf in (4, 5, 6, 7)],
    "link": [{"at": f"{AT_US}us", "link": ["leaf0", "spine0"]}],
}
"""The parts that die, by the column of the table."""
MARKS = "training-outage"
NEVER = "never"


def compare_outage(
    folder: str | Path,
    *,
    only: Sequence[str] = (),
    sets: Sequence[tuple[str, str]] = (),
    seed: int = 1,
    seeds: int | Iterable[int] = 1,
    workers: int | None = None,
    dask: Any = None,
    progress: bool | None = None,
) -> Outage:
    """Runs an all-reduce over every scheme, or `only` those whose name contains one of these words, whole and with a
    failure in the middle of it.

    With several `seeds`, a number of them from `seed` on or a list, times are means over them; a job that never ends
    with one of them has none. Runs that exist in `folder` are not repeated. `sets` are keys set over the scenario.
    `workers`, `dask` and `progress` are as for a sweep.
    """
    drawn = seeds_from(seed, seeds)
    base, absent, points = Scenario.load(FILE).with_text(list(sets)), dict[str, str](), []
    for one in chosen([*contenders(), as_deployed()], only):
        try:
            points += [
                _point(one, base, what, failures, seed, drawn) for what, failures in DEAD.items() for seed in drawn
            ]
        except ScenarioError as error:
            absent[one.name] = f"{error.key}: {error.message}"
    if not points:
        raise ValueError("; ".join(f"{name} cannot run: {why}" for name, why in absent.items()))
    result = Sweep(points, Path(folder)).run(workers=workers, dask=dask, progress=progress)
    if result.interrupted:
        raise KeyboardInterrupt
    runs = over_seeds(result.table().reset_index(drop=True), ("scheme", "dies"), whole=True)
    return Outage(runs, absent, said(drawn), result.unchanged)


def _point(
    one: Contender, base: Scenario, what: str, failures: list[dict[str, Any]], seed: int, drawn: Sequence[int]
) -> Point:
    """A run of a contender. Settings of resubmission are those of a class of traffic, and jobs have none."""
    keys: dict[str, Value] = {key: value for key, value in one.keys.items() if not key.startswith("traffic.")}
    if failures:
        keys |= {"failure": failures, "reroute_delay": REROUTE}
    scenario = base.with_(keys, seed=seed)
    scenario.check()
    return Point(Trained.of(scenario), {"scheme": one.name, "dies": what} | label(seed, drawn))


@dataclass(frozen=True)
class Outage:
    """The results of the comparison."""

    runs: pd.DataFrame
    """One row per run: scheme, the part that dies, and the measurements of the job."""
    absent: Mapping[str, str]
    """Who could not run, and why."""
    setting: str
    unchanged: Sequence[Unchanged]
    """Runs that should differ and do not."""

    @property
    def ok(self) -> bool:
        """Whether the audits of all runs found no faults."""
        return bool((self.runs["audit"] == 1).all())

    def table(self) -> pd.DataFrame:
        """A row for each scheme: the job's time in ms without a failure, when half of the planes die (and the least
        that this can take, and what it takes if the rest takes twice as long), and when a link dies; NaN where the job
        never ends.
        """
        times = self.runs.pivot_table("time ms", "scheme", "dies", sort=False, dropna=False).reindex(columns=list(DEAD))
        times = times.reindex(self.runs["scheme"].unique())
        again = self.runs.pivot_table("sent again", "scheme", "dies", sort=False, dropna=False)
        return pd.DataFrame(
            {
                "whole ms": times["whole"],
                "half of the planes ms": times["planes"],
                "least ms": least_ms(),
                "doubled ms": _doubled(times["whole"]),
                "one link ms": times["link"],
                "sent again %": again["planes"] * 100,
            }
        ).rename_axis("scheme")

    def markdown(self) -> str:
        """The table as a page has it."""
        head = ["scheme", "no failure (ms)", "half of the planes die (ms)", "doubled (ms)", "one link dies (ms)"]
        times = ("whole ms", "half of the planes ms", "doubled ms", "one link ms")
        rows = [[str(name), *(_time_text(row[key]) for key in times)] for name, row in self.table().iterrows()]
        lines = [*marked.table(head, rows), "", f"With {self.setting}, at commit {_core.COMMIT}."]
        if missing := marked.absent(self.absent):
            lines += ["", *missing]
        return "\n".join(lines) + "\n"

    def write(self, page: str | Path) -> Path:
        """Puts the table into a page in Markdown, between its marks."""
        return marked.put(page, MARKS, self.markdown())

    def report(self, path: str | Path) -> Path:
        """Writes the page."""
        from clearway.reports import html

        table = self.table()
        rows = [[str(name), *map(_time_text, row)] for name, row in zip(table.index, table.to_numpy())]
        parts = [
            "<h1>A plane or a link dies in the middle of an all-reduce</h1>",
            f"<p class=subtitle>{escape(self.setting)}</p>",
            html.section("Time of the job", html.table(["scheme", *table.columns], rows, text=1)),
            html.section("No difference", "".join(f"<p>{escape(str(one))}</p>" for one in self.unchanged)),
        ]
        if self.absent:
            absent = [[name, why] for name, why in self.absent.items()]
            parts.append(html.section("Did not take part", html.table(["", "why"], absent, text=2)))
        return html.write("A plane or a link dies", parts, Path(path), "")


def _doubled(whole: Any) -> Any:
    """The time of a job whose rest takes twice as long from the failure on."""
    return AT_US / 1e3 + 2 * (whole - AT_US / 1e3)


def least_ms() -> float:
    """The time that the links alone need for it, in ms, when half of the planes die.

    >>> round(least_ms(), 3)
    2.101
    """
    ranks, size, planes, gbps, payload, packet = 8, 32e6, 4, 100, 1_460, 1_500
    return float(_doubled(2 * (ranks - 1) / ranks * size * packet / payload * 8 / (planes * gbps) / 1e6))


def _time_text(value: float) -> str:
    return f"{value:.2f}" if value == value else NEVER
