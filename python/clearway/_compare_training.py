"""The comparison of all schemes under training jobs: what `clearway compare --all --work training` runs and measures.

Four jobs, each alone on a leaf-spine of 100 and 400 Gbps, over every contender of `clearway compare --all`: a ring
all-reduce, an all-to-all, an iteration of a small mixture of experts, and one of a small model in a pipeline with
tensor parallelism. Then two jobs at once, one of which sends over four times as many channels, to see whether they
share fairly, with Augmented Queue beside the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from clearway._compare_all import Contender, contenders
from clearway._errors import ScenarioError
from clearway._jobs import iterations
from clearway._results import Result
from clearway._scenario import Scenario
from clearway._sweep import Point, Simulation, Sweep

if TYPE_CHECKING:
    from clearway._scenario import Value

FOLDER = Path(__file__).parent / "comparison"
HOSTS_PER_RACK = 16
RANKS = (128,)
JOBS = ("all-reduce", "all-to-all", "experts", "pipeline", "two jobs")
_ACCELERATOR = {"teraflops": 312.0, "efficiency": 0.5}


def works(ranks: int) -> dict[str, dict[str, Any]]:
    """The jobs, by name; `ranks` is a multiple of 16.

    >>> list(works(128))
    ['all-reduce', 'all-to-all', 'experts', 'pipeline']
    """
    sizes = {"sequence": 512, "vocabulary": 1000}
    experts = {"layers": 2, "hidden": 512, "experts": 16, "top_k": 2, "expert_hidden": 1024, "gini": 0.2, **sizes}
    gpt = {"layers": 4, "hidden": 1024, **sizes}
    common = {"accelerator": _ACCELERATOR}
    return {
        "all-reduce": {"steps": [{"all_reduce": {"bytes": "16MB"}}]},
        "all-to-all": {"steps": [{"all_to_all": {"bytes": "8MB"}}]},
        "experts": {
            "model": {"model": {"moe": experts}, "degrees": {"data": ranks, "expert": 16}, "micro_batches": 1, **common}
        },
        "pipeline": {
            "model": {
                "model": {"gpt": gpt},
                "degrees": {"tensor": 4, "pipeline": 4, "data": ranks // 16},
                "micro_batches": 4,
                **common,
            }
        },
    }


def two_jobs() -> list[dict[str, Any]]:
    """Two jobs that sum as much on the same hosts, one over four times as many channels."""
    steps = [{"all_reduce": {"bytes": "16MB"}}]
    return [
        {"name": "one channel", "steps": steps, "hosts": "0-31"},
        {"name": "four channels", "steps": steps, "hosts": "0-31", "library": {"channels": 4}},
    ]


class Trained(Simulation):
    """A run with training jobs, and its measurements."""

    def row(self, folder: Path) -> dict[str, Any]:
        """Its row in the table of the comparison."""
        return measure(Result.load(folder))


def measure(result: Result) -> dict[str, Any]:
    """The measurements of a run with jobs: times in milliseconds; NaN for a job that did not end."""
    rows, links, flows = iterations(result), result.links, result.flows
    time = rows["time"].groupby(level="job", sort=False).sum(min_count=1)
    ended = rows["time"].notna().groupby(level="job", sort=False).all()
    time = time.where(ended)
    rates = np.nan_to_num(1 / time.to_numpy())
    of_switches = links["tier"] != "from_host"
    sent = links["sent_packets"].sum()
    return {
        "time ms": float(time.max() / 1e3) if ended.all() else np.nan,
        "exposed ms": float(rows["exposed"].sum() / len(time) / 1e3) if ended.all() else np.nan,
        "fairness": float(rates.sum() ** 2 / (len(rates) * (rates**2).sum())) if (rates > 0).any() else np.nan,
        "longest queue KB": float(links["queued_bytes_max"][of_switches].max() / 1e3),
        "lost": float(links["overflow_packets"].sum() / max(sent, 1)),
        "sent again": float(flows["resent_packets"].sum() / max(flows["sent_packets"].sum(), 1)),
        "messages": len(flows),
        "audit": float(result.ok),
    }


def compare_training(
    folder: str | Path,
    *,
    only: Sequence[str] = (),
    ranks: Sequence[int] = RANKS,
    jobs: Sequence[str] = (),
    sets: Sequence[tuple[str, str]] = (),
    seed: int = 1,
    workers: int | None = None,
    dask: Any = None,
    progress: bool | None = None,
) -> Training:
    """Runs four training jobs over every scheme, or `only` those whose name contains one of these words, and two
    jobs at once.

    `ranks` are the sizes of the jobs, multiples of 16. `jobs` are some of them, such as "all-reduce" or "two jobs";
    all if there are none. `sets` are keys set over the scenarios. Runs that exist in
    `folder` are not repeated. `workers`, `dask` and `progress` are as for a sweep.
    """
    wrong = [count for count in ranks if count < 32 or count % 16]
    if wrong:
        raise ValueError(f"{wrong[0]} ranks: write a multiple of 16, from 32 on, such as 128")
    unknown = [job for job in jobs if job not in JOBS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a job of this comparison; those are {', '.join(JOBS)}")
    known = [*contenders(), *_beside()]
    lost = [word for word in only if not any(word in one.name.split() for one in known)]
    if lost:
        raise ValueError(f"{lost[0]!r} is not a contender; those are {', '.join(one.name for one in known)}")
    who = [one for one in known if not only or any(word in one.name.split() for word in only)]
    base, absent, points = Scenario.load(FOLDER / "training.toml"), dict[str, str](), []
    for one in who:
        try:
            points += [
                point
                for count in ranks
                for point in _points_of(one, base.with_text(list(sets)), count, seed)
                if not jobs or point.labels["work"] in jobs
            ]
        except ScenarioError as error:
            absent[one.name] = f"{error.key}: {error.message}"
    if not points:
        raise ValueError("; ".join(f"{name} cannot run: {why}" for name, why in absent.items()))
    result = Sweep(points, Path(folder)).run(workers=workers, dask=dask, progress=progress)
    if result.interrupted:
        raise KeyboardInterrupt
    return Training(result.table().reset_index(drop=True), who, absent, f"seed {seed}")


def _beside() -> list[Contender]:
    """Who is not in the catalogue as a contender: two jobs as tenants of Augmented Queue."""
    request = {"position": "ingress", "share": {"weight": 1}}
    entities: Any = [
        {"name": job["name"], "traffic": [job["name"]], "each": "host", "request": [request]} for job in two_jobs()
    ]
    keys: dict[str, Value] = {"transport": "dctcp", "sharing": "aq", "entity": entities}
    return [Contender("dctcp under aq", "reactive", keys, ("dctcp", "aq"))]


def _points_of(one: Contender, base: Scenario, ranks: int, seed: int) -> list[Point]:
    """The runs of a contender. Settings of resubmission are those of a class of traffic, and jobs have none."""
    keys = {key: value for key, value in one.keys.items() if not key.startswith("traffic.")}
    racks = -(-ranks // HOSTS_PER_RACK)
    found = []
    given: dict[str, list[dict[str, Any]]] = {"two jobs": two_jobs()}
    if "entity" not in keys:
        given |= {name: [{"name": name, **job}] for name, job in works(ranks).items()}
    for work, jobs in given.items():
        scenario = base.with_({"fabric.leaf_spine.racks": racks, "job": jobs, **keys}, seed=seed)
        scenario.check()
        found.append(Point(Trained.of(scenario), {"scheme": one.name, "work": work, "ranks": ranks}))
    return found


@dataclass(frozen=True)
class Training:
    """The results of the comparison."""

    runs: pd.DataFrame
    """A row a run: scheme, work, ranks, and what `measure` says of it."""
    contenders: Sequence[Contender]
    absent: Mapping[str, str]
    """Who could not run, and why."""
    setting: str

    @property
    def ok(self) -> bool:
        """Whether the audits of all runs found no faults."""
        return bool((self.runs["audit"] == 1).all())

    def table(self) -> pd.DataFrame:
        """A row for each scheme and number of ranks: the time of each job in ms, how fairly two jobs share."""
        times = self.runs.pivot_table("time ms", ["scheme", "ranks"], "work", sort=False, dropna=False)
        two = self.runs[self.runs["work"] == "two jobs"].set_index(["scheme", "ranks"])["fairness"]
        return times.rename(columns=lambda name: f"{name} ms").assign(fairness=two).rename_axis(columns=None)

    def said(self) -> list[str]:
        """What the comparison says, in sentences with their numbers."""
        said = []
        for (work, ranks), rows in self.runs.groupby(["work", "ranks"], sort=False):
            times = rows.set_index("scheme")["time ms"].dropna().sort_values()
            if work == "two jobs" or not len(times):
                continue
            first, last = times.index[0], times.index[-1]
            said.append(
                f"{work}, {ranks} ranks: {first} is the fastest with {times.iloc[0]:.2f} ms; the median of "
                f"{len(times)} schemes takes {times.median() / times.iloc[0]:.2f} times as long, {last} "
                f"{times.iloc[-1] / times.iloc[0]:.2f} times."
            )
            stopped = rows[rows["time ms"].isna()]["scheme"].tolist()
            if stopped:
                said.append(f"{work}, {ranks} ranks: it does not end over {', '.join(stopped)}.")
        two = self.runs[self.runs["work"] == "two jobs"].set_index("scheme")["fairness"].dropna().sort_values()
        if len(two):
            said.append(
                f"Two jobs, one with four times as many channels: {two.index[-1]} shares most fairly (Jain's index "
                f"{two.iloc[-1]:.3f}), {two.index[0]} least ({two.iloc[0]:.3f})."
            )
        return said

    def report(self, path: str | Path) -> Path:
        """Writes the page."""
        from clearway import _html

        head = ["scheme", "ranks", *self.table().columns]
        rows = [[name, f"{ranks:,}", *map(_html.number, row)] for (name, ranks), row in
                zip(self.table().index, self.table().to_numpy())]  # fmt: skip
        costs = self.runs.groupby(["scheme", "ranks"], sort=False)[["exposed ms", "longest queue KB"]].mean()
        costs = costs.join(self.runs.groupby(["scheme", "ranks"], sort=False)[["lost", "sent again"]].max() * 100)
        more = [[name, f"{ranks:,}", *map(_html.number, row)] for (name, ranks), row in
                zip(costs.index, costs.to_numpy())]  # fmt: skip
        parts = [
            "<h1>Every scheme under training</h1>",
            f"<p class=subtitle>{escape(self.setting)}</p>",
            _html.section("What it says", "".join(f"<p>{escape(sentence)}</p>" for sentence in self.said())),
            _html.section("Time of each job", _html.table(head, rows, text=1)),
            _html.section(
                "What it costs",
                _html.table(["scheme", "ranks", "exposed (ms)", "longest queue (KB)", "lost (%)", "sent again (%)"],
                            more, text=1),
            ),
        ]  # fmt: skip
        if self.absent:
            absent = [[name, why] for name, why in self.absent.items()]
            parts.append(_html.section("Did not take part", _html.table(["", "why"], absent, text=2)))
        return _html.write("Every scheme under training", parts, Path(path), "")
