"""The comparison of all schemes under training jobs: what `clearway compare --all --work training` runs and measures.

Four jobs, each alone on a leaf-spine of 100 and 400 Gbps, over every contender of `clearway compare --all` and over
RoCE as it is deployed: a ring all-reduce, an all-to-all, an iteration of a small mixture of experts, and one of a
small model in a pipeline with tensor parallelism. Then two jobs at once, one of which sends over four times as many
channels, to see whether they share fairly, with Augmented Queue beside the others; the all-reduce beside remote
procedure calls, which Harmony carries beside a job over DCTCP; and the all-reduce and the all-to-all on a torus of
three dimensions, as TPU-like machines have it and R2C2 is made for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from clearway import _core
from clearway.comparisons.all_schemes import Contender, chosen, contenders
from clearway.comparisons.seeds import label, over_seeds, said, seeds_from
from clearway.errors import ScenarioError
from clearway.reports import marked
from clearway.results.jobs import iterations
from clearway.results.result import Result
from clearway.scenarios.scenario import Scenario
from clearway.sweeps import Point, Simulation, Sweep
from clearway.sweeps.points import Label

if TYPE_CHECKING:
    from clearway.comparisons.unchanged import Unchanged
    from clearway.scenarios.scenario import Value

FOLDER = Path(__file__).parent
HOSTS_PER_RACK = 16
RANKS = (128,)
ALONE = ("all-reduce", "all-to-all", "experts", "pipeline")
TORUS = ("torus all-reduce", "torus all-to-all")
RPCS = "beside rpcs"
JOBS = (*ALONE, "two jobs", RPCS, *TORUS)
TWO_JOBS_ON = 32
"""The hosts of two jobs at once."""
_ACCELERATOR = {"teraflops": 312.0, "efficiency": 0.5}


def works(ranks: int, scale: float = 1.0) -> dict[str, dict[str, Any]]:
    """The jobs, by name; `ranks` is a multiple of 16. Buffers and sequences are `scale` times as long.

    >>> list(works(128))
    ['all-reduce', 'all-to-all', 'experts', 'pipeline']
    """
    sizes = {"sequence": max(16, round(512 * scale)), "vocabulary": 1000}
    experts = {"layers": 2, "hidden": 512, "experts": 16, "top_k": 2, "expert_hidden": 1024, "gini": 0.2, **sizes}
    gpt = {"layers": 4, "hidden": 1024, **sizes}
    common = {"accelerator": _ACCELERATOR}
    return {
        "all-reduce": {"steps": [{"all_reduce": {"bytes": _bytes(16e6 * scale)}}]},
        "all-to-all": {"steps": [{"all_to_all": {"bytes": _bytes(8e6 * scale)}}]},
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


def torus(ranks: int) -> dict[str, Any]:
    """A torus of three dimensions, as near to a cube as the number of nodes allows, one rank each, with links of 100
    Gbps.

    >>> torus(128)["torus"]["dims"]
    [4, 4, 8]
    """
    found = [
        (depth - height, [height, width, depth])
        for height in range(2, round(ranks ** (1 / 3)) + 1)
        for width in range(height, ranks // height + 1)
        if (depth := ranks // (height * width)) >= width and height * width * depth == ranks
    ]
    # A node's host takes in what all six of its links bring.
    return {"torus": {"dims": min(found)[1], "rate": "100Gbps", "host_rate": "600Gbps"}}


def _bytes(count: float) -> str:
    return f"{round(count)}B"


def rpcs() -> dict[str, Any]:
    """Remote procedure calls of 10 KB among all hosts, a tenth of what their links carry."""
    return {
        "name": "rpcs",
        "sizes": {"constant": "10KB"},
        "arrivals": {"poisson": {"load": 0.1}},
        "duration": "2ms",
    }


def two_jobs(scale: float = 1.0) -> list[dict[str, Any]]:
    """Two jobs that sum as much on the same hosts, one over four times as many channels."""
    steps = [{"all_reduce": {"bytes": _bytes(16e6 * scale)}}]
    return [
        {"name": "one channel", "steps": steps, "hosts": f"0-{TWO_JOBS_ON - 1}"},
        {"name": "four channels", "steps": steps, "hosts": f"0-{TWO_JOBS_ON - 1}", "library": {"channels": 4}},
    ]


class Trained(Simulation):
    """A run with training jobs, and its measurements."""

    def row(self, folder: Path) -> dict[str, Any]:
        """Its row in the table of the comparison."""
        return measure(Result.load(folder))


def measure(result: Result) -> dict[str, Any]:
    """The measurements of a run with jobs: times in milliseconds; NaN for a job that did not end."""
    rows, links, flows = iterations(result), result.links, result.flows
    calls = flows["class"] == "rpcs"
    slow = float(np.nanmax(rows["slowdown"])) if rows["slowdown"].notna().any() else np.nan
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
        "slowdown": slow if ended.all() else np.nan,
        "rpc p99 us": float(np.quantile(flows["fct_ps"][calls].astype(float), 0.99) / 1e6) if calls.any() else np.nan,
        "rpcs refused": float(np.isin(flows["status"][calls], ("rejected", "failed")).mean())
        if calls.any()
        else np.nan,
        "hops": float(result.info["packet_hops"]),
        "digest": result.digest or "",
        # A job that stops is a result, which the table tells.
        "audit": float(all(of["ok"] or of["name"] == "every flow ended" for of in result.info["audit"])),
    }


def marks(ranks: Sequence[int] = RANKS) -> str:
    """The name of the place in a page for a comparison with this number of ranks: each has its own.

    >>> marks([128, 1024])
    'training-1024'
    """
    return f"training-{max(ranks)}"


def compare_training(
    folder: str | Path,
    *,
    only: Sequence[str] = (),
    ranks: Sequence[int] = RANKS,
    jobs: Sequence[str] = (),
    sets: Sequence[tuple[str, str]] = (),
    scale: float = 1.0,
    seed: int = 1,
    seeds: int | Iterable[int] = 1,
    workers: int | None = None,
    dask: Any = None,
    progress: bool | None = None,
) -> Training:
    """Runs four training jobs over every scheme, or `only` those whose name contains one of these words, and two
    jobs at once.

    `ranks` are the sizes of the jobs, multiples of 16. `jobs` are some of them, such as "all-reduce" or "two jobs";
    all if there are none. Buffers and sequences are `scale` times as long. `sets` are keys set over the scenarios.
    With several `seeds`, a number of them from `seed` on or a list, times are means over them; a job that never ends
    with one of them has none. Runs that exist in `folder` are not repeated. `workers`, `dask` and `progress` are as for
    a sweep.
    """
    wrong = [count for count in ranks if count < 32 or count % 16]
    if wrong:
        raise ValueError(f"{wrong[0]} ranks: write a multiple of 16, from 32 on, such as 128")
    if not 0 < scale <= 1_000:
        raise ValueError(f"scale {scale:g}: write a number above 0, such as 0.1, and at most 1000")
    unknown = [job for job in jobs if job not in JOBS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a job of this comparison; those are {', '.join(JOBS)}")
    who, drawn = chosen([*contenders(), as_deployed(), *_beside()], only), seeds_from(seed, seeds)
    base, absent, points = Scenario.load(FOLDER / "training.toml").with_text(list(sets)), dict[str, str](), []
    for one in who:
        for count in ranks:
            for work, keys in _works_of(one, count, scale).items():
                if jobs and work not in jobs:
                    continue
                try:
                    points += [_point(one, base, work, keys, count, seed, drawn) for seed in drawn]
                except ScenarioError as error:
                    # Some cannot run on a torus, some nowhere.
                    ground = " on a torus" if work in TORUS else ""
                    absent.setdefault(one.name + ground, f"{error.key}: {error.message}")
    if not points:
        raise ValueError("; ".join(f"{name} cannot run: {why}" for name, why in absent.items()))
    result = Sweep(points, Path(folder)).run(workers=workers, dask=dask, progress=progress)
    if result.interrupted:
        raise KeyboardInterrupt
    runs = over_seeds(result.table().reset_index(drop=True), ("scheme", "work", "ranks"), whole=True)
    return Training(runs, who, absent, _setting(drawn, scale), result.unchanged)


def _setting(seeds: Sequence[int], scale: float) -> str:
    return said(seeds) + (f", buffers and sequences {scale:g} times as long" if scale != 1 else "")


def as_deployed() -> Contender:
    """RoCE as networks for training have it: DCQCN; PFC with headroom by the operators' formula; adaptive routing by
    packet; NICs that place packets in any order and send again what is missing, once a timeout says so.

    >>> as_deployed().name
    'roce as deployed'
    """
    # More than any window: only a timeout takes a packet for lost. It is longer than pauses last.
    order = {"irn": {"reordering_packets": 100_000, "rto_low": "4ms", "rto_high": "4ms"}}
    keys: dict[str, Value] = {
        "transport": {"dcqcn": {"recovery": order}},
        "flow_control": {"pfc": {"headroom": {}}},
        "switch.balancing": {"adaptive": {}},
        "switch.buffer": {"shared": {"bytes": "16MB"}},
    }
    return Contender("roce as deployed", "lossless", keys, ("dcqcn", "pfc"))


HARMONY = "dctcp beside harmony"
AQ = "dctcp under aq"


def _beside() -> list[Contender]:
    """Contenders that the catalogue does not have: two jobs as tenants of Augmented Queue, and a job over DCTCP beside
    calls over Harmony.
    """
    # At each of its hosts a job asks for its share of the link out of it.
    request = [{"position": "ingress", "share": {"weight": 1}}]
    entities: Any = [
        {"name": job["name"], "traffic": [job["name"]], "each": "host", "request": request} for job in two_jobs()
    ]
    keys: dict[str, Value] = {"transport": "dctcp", "sharing": "aq", "entity": entities}
    return [
        Contender(AQ, "reactive", keys, ("dctcp", "aq")),
        Contender(HARMONY, "proactive", {"transport": "dctcp"}, ("dctcp", "harmony")),
    ]


def _works_of(one: Contender, ranks: int, scale: float) -> dict[str, dict[str, Any]]:
    """The work that a contender runs, and the keys of each."""
    if one.name == AQ:
        return {"two jobs": {"job": two_jobs(scale)}}
    jobs = {name: [{"name": name, **job}] for name, job in works(ranks, scale).items()}
    again = one.keys.get("traffic.all.resubmit")
    # Applications submit a refused call again, as Harmony's section 4 leaves it to them.
    calls = rpcs() | ({"resubmit": again} if again is not None else {})
    if one.name == HARMONY:
        calls |= {"transport": "harmony", "resubmit": [{"times": 2, "after": "100us"}, {"over": "dctcp"}]}
    beside = {"job": jobs["all-reduce"], "traffic": [calls], "measure.alone": True}
    if one.name == HARMONY:
        return {RPCS: beside}
    found: dict[str, dict[str, Any]] = {name: {"job": job} for name, job in jobs.items()}
    found |= {"two jobs": {"job": two_jobs(scale)}, RPCS: beside}
    found |= {name: {"job": jobs[name.removeprefix("torus ")], "fabric": torus(ranks)} for name in TORUS}
    return found


def _point(
    one: Contender, base: Scenario, work: str, of_work: dict[str, Any], ranks: int, seed: int, drawn: Sequence[int]
) -> Point:
    """A run of a contender. Settings of resubmission are those of a class of traffic, and jobs have none."""
    keys = {key: value for key, value in one.keys.items() if not key.startswith("traffic.")}
    racks = {} if work in TORUS else {"fabric.leaf_spine.racks": -(-ranks // HOSTS_PER_RACK)}
    scenario = base.with_({**racks, **of_work, **keys}, seed=seed)
    scenario.check()
    labels: dict[str, Label] = {"scheme": one.name, "work": work, "ranks": ranks}
    return Point(Trained.of(scenario), labels | label(seed, drawn))


@dataclass(frozen=True)
class Training:
    """The results of the comparison."""

    runs: pd.DataFrame
    """One row per run: scheme, work, ranks, and the values of `measure`."""
    contenders: Sequence[Contender]
    absent: Mapping[str, str]
    """Who could not run, and why."""
    setting: str
    unchanged: Sequence[Unchanged] = ()
    """Runs over another scheme in which every packet was the same."""

    @property
    def ok(self) -> bool:
        """Whether the audits of all runs found no faults."""
        return bool((self.runs["audit"] == 1).all())

    def table(self) -> pd.DataFrame:
        """A row for each scheme and number of ranks: the time of each job in ms, how fairly two jobs share."""
        times = self.runs.pivot_table("time ms", ["scheme", "ranks"], "work", sort=False, dropna=False)
        # Otherwise a scheme without runs would have a row for every number of ranks.
        times = times.reindex(list(dict.fromkeys(zip(self.runs["scheme"], self.runs["ranks"]))))
        times.index.names = ["scheme", "ranks"]
        two = self.runs[self.runs["work"] == "two jobs"].set_index(["scheme", "ranks"])["fairness"]
        return times.rename(columns=lambda name: f"{name} ms").assign(fairness=two).rename_axis(columns=None)

    def costs(self) -> pd.DataFrame:
        """A row for each scheme and number of ranks, of the jobs that are alone on the leaf-spine: the mean exposed
        time in ms, the longest queue in KB, the largest shares of packets that were lost and sent again, in percent.
        """
        runs = self.runs[self.runs["work"].isin(ALONE)].groupby(["scheme", "ranks"], sort=False)
        shares = runs[["lost", "sent again"]].max() * 100
        costs = runs[["exposed ms"]].mean().join(runs["longest queue KB"].max())
        return costs.join(shares.rename(columns=lambda name: f"{name} %"))

    def said(self) -> list[str]:
        """The findings at the largest number of ranks, in sentences with their numbers."""
        from clearway.comparisons.training_said import sentences

        return sentences(self.runs)

    def markdown(self) -> str:
        """The sentences and the table of times as a page has them."""
        lines = [f"{number}. {said}" for number, said in enumerate(self.said(), 1)]
        lines += ["", *_lines(self.table())]
        if len(costs := self.costs()):
            lines += [
                "",
                "The cost of jobs that are alone on the leaf-spine: the mean of the exposed time, the longest queue,",
            ]
            lines += ["and the largest shares of packets that were lost and sent again.", "", *_lines(costs)]
        lines += ["", f"With {self.setting}, at commit {_core.COMMIT}. –: does not take part, or never ends."]
        if missing := marked.absent(self.absent):
            lines += ["", *missing]
        return "\n".join(lines) + "\n"

    def write(self, page: str | Path) -> Path:
        """Puts them into a page in Markdown, between its marks."""
        return marked.put(page, marks(self.runs["ranks"].tolist()), self.markdown())

    def report(self, path: str | Path) -> Path:
        """Writes the page."""
        from clearway.reports import html

        head = ["scheme", "ranks", *self.table().columns]
        rows = [[name, f"{ranks:,}", *map(html.number, row)] for (name, ranks), row in
                zip(self.table().index, self.table().to_numpy())]  # fmt: skip
        costs = self.costs()
        more = [[name, f"{ranks:,}", *map(html.number, row)] for (name, ranks), row in
                zip(costs.index, costs.to_numpy())]  # fmt: skip
        parts = [
            "<h1>Every scheme under training</h1>",
            f"<p class=subtitle>{escape(self.setting)}</p>",
            html.section("What it says", "".join(f"<p>{escape(sentence)}</p>" for sentence in self.said())),
            html.section(
                "Time of each job", html.table(head, rows, text=1) + "<p>–: it does not take part, or never ends.</p>"
            ),
            html.section(
                "What it costs",
                html.table(["scheme", "ranks", *map(_with_unit, costs.columns)], more, text=1),
            ),
        ]  # fmt: skip
        calls = self.runs[self.runs["work"] == RPCS]
        if len(calls):
            head = ["scheme", "ranks", "99th percentile of calls (µs)", "slowdown of the job", "calls refused (%)"]
            rows = [
                [row["scheme"], f"{row['ranks']:,}", *map(html.number, (row["rpc p99 us"], row["slowdown"])),
                 html.number(row["rpcs refused"] * 100)]
                for row in calls.to_dict("records")
            ]  # fmt: skip
            parts.append(html.section("Remote procedure calls beside the all-reduce", html.table(head, rows, text=1)))
        parts.append(html.section("No difference", "".join(f"<p>{escape(str(one))}</p>" for one in self.unchanged)))
        if self.absent:
            absent = [[name, why] for name, why in self.absent.items()]
            parts.append(html.section("Did not take part", html.table(["", "why"], absent, text=2)))
        return html.write("Every scheme under training", parts, Path(path), "")


def _with_unit(column: str) -> str:
    """A column's name, with its unit in brackets if it has one."""
    name, _, unit = column.rpartition(" ")
    return f"{name} ({unit})" if unit in ("ms", "KB", "%") else column


def _lines(table: pd.DataFrame) -> list[str]:
    """A table by scheme and number of ranks, in Markdown."""
    head = ["scheme", "ranks", *map(_with_unit, table.columns)]

    def number(value: float) -> str:
        return "–" if np.isnan(value) else f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"

    rows = [[name, f"{ranks:,}", *map(number, row)] for (name, ranks), row in zip(table.index, table.to_numpy())]
    return marked.table(head, rows)
