"""The comparison of all schemes: what `clearway compare --all` runs, and what it measures.

The conditions are those of dcPIM's evaluation (SIGCOMM 2022, section 4.1): three workloads, a leaf-spine and a
fat-tree, links of 100 Gbps. It includes all transports of the catalogue, with PFC for those made for lossless networks,
and all flow controls, with a transport that leaves everything to them. Mechanisms that share bandwidth among entities
(Augmented Queue and the rate limiters) are not included: they do nothing without entities.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clearway.comparisons.seeds import label, over_seeds, said, seeds_from
from clearway.comparisons.sustain import Bisection, kept_up
from clearway.defaults import KEEPS_UP
from clearway.errors import ScenarioError
from clearway.results.result import Result
from clearway.scenarios.listings import schemes
from clearway.scenarios.scenario import Scenario, Value
from clearway.sweeps import Point as Run
from clearway.sweeps import Simulation, Sweep

FOLDER = Path(__file__).parent
FABRICS = ("leaf-spine", "fat-tree")
WORKLOADS = {"websearch": "web search", "imc10": "IMC10", "datamining": "data mining"}
LOADS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

SUSTAINED_ON = "imc10"
"""Sustained loads are of the workload for which dcPIM's paper has them (figure 3a)."""
SUSTAINED_LOADS = tuple(round(0.3 + 0.05 * step, 2) for step in range(14))

FAMILIES = ("proactive", "reactive", "lossless")

# 16 MB in each switch, as dcPIM has it for HPCC (table 1), instead of 500 KB at each port.
_SHARED: dict[str, Value] = {"switch.buffer": {"shared": {"bytes": "16MB"}}}
# Resubmission, which Harmony's section 4 leaves to applications: twice more, then over TCP.
_AGAIN: dict[str, Value] = {"traffic.all.resubmit": [{"times": 2, "after": "100us"}, {"over": "dctcp"}]}


@dataclass(frozen=True)
class Contender:
    """A transport with the flow control below it."""

    name: str
    family: str
    keys: Mapping[str, Value] = field(compare=False)
    uses: tuple[str, ...]
    """The schemes of the catalogue that it is made of."""


def contenders() -> list[Contender]:
    """All contenders, family by family, in the order of the catalogue.

    >>> [c.name for c in contenders() if c.family == "lossless"][:2]
    ['rdma over pfc', 'dcqcn over pfc']
    """
    catalogue = schemes()
    found = [_contender(str(name), row) for name, row in catalogue[catalogue["compared"]].iterrows()]
    return sorted(found, key=lambda one: FAMILIES.index(one.family))


def _contender(name: str, of: pd.Series[Any]) -> Contender:
    """The contender that a row of the catalogue describes."""
    if beside := of["beside"]:
        transport, flow_control = (name, beside) if of["kind"] == "transport" else (beside, name)
        keys = {"transport": transport, "flow_control": flow_control, **_SHARED}
        return Contender(f"{transport} over {flow_control}", of["family"], keys, (transport, flow_control))
    if of["rejects"]:
        return Contender(name, of["family"], {"transport": name, **_AGAIN}, (name, "dctcp"))
    return Contender(name, of["family"], {"transport": name}, (name,))


class Measured(Simulation):
    """A run and its measurements."""

    def row(self, folder: Path) -> dict[str, Any]:
        """Its row in the table of a comparison."""
        return dict(measure(Result.load(folder)))


def compare_all(
    folder: str | Path,
    *,
    only: Sequence[str] = (),
    fabrics: Sequence[str] = FABRICS,
    workloads: Sequence[str] = tuple(WORKLOADS),
    loads: Sequence[float] = LOADS,
    duration: str = "5ms",
    sustained: str = "15ms",
    sets: Sequence[tuple[str, str]] = (),
    seed: int = 1,
    seeds: int | Iterable[int] = 1,
    workers: int | None = None,
    dask: Any = None,
    progress: bool | None = None,
) -> SchemeComparison:
    """Runs every scheme, or `only` those whose name contains one of these words, under dcPIM's conditions, and measures
    them.

    Messages arrive for `duration` at each of `loads`. Sustained loads are found on the first fabric, by bisection in
    steps of 0.05, in runs of length `sustained` (none if it is empty). `sets` are keys set over the scenarios, as on a
    command line, such as `("fabric.fat_tree.k", "16")`; a key of one fabric does not affect the other. With several
    `seeds`, a number of them from `seed` on or a list, each run is repeated with each. Numbers are then means over
    seeds, intervals are over seeds, and a load is sustained if it is with each of them. Runs that exist in `folder` are
    not repeated; after Ctrl-C the comparison resumes. `workers`, `dask` and `progress` are as for a sweep.
    """
    who, drawn = chosen(contenders(), only), seeds_from(seed, seeds)
    _check_fabrics(fabrics)
    absent, checked, folder = dict[str, str](), set[tuple[str, str]](), Path(folder)

    run = functools.partial(
        _run, folder=folder, absent=absent, checked=checked, workers=workers, dask=dask, progress=progress
    )

    def at(
        one: Contender, fabric: str, workload: str, load: float, lasting: str
    ) -> Iterable[tuple[Contender, dict[str, Any], Scenario]]:
        base = _base(fabric, sets)
        keys = {"traffic.all.sizes": workload, "traffic.all.duration": lasting, **one.keys}
        labels = {"fabric": fabric, "workload": workload, "load": load}
        return [(one, labels | label(seed, drawn), base.with_(keys, load=load, seed=seed)) for seed in drawn]

    points = itertools.product(who, fabrics, workloads, loads)
    grid = run(one for point in points for one in at(*point, duration))
    fair, smaller = _fair_ground(sets)
    present = [one for one in who if one.name not in absent]
    shared = run(
        (one, {"traffic": "fairness"} | label(seed, drawn), fair.with_(one.keys, seed=seed))
        for one in present
        for seed in drawn
    )
    searches = {one.name: Bisection(SUSTAINED_LOADS) for one in who if sustained}
    named = {one.name: one for one in who}
    first = (fabrics[0], SUSTAINED_ON)
    _search(
        searches,
        absent,
        lambda tried: run(one for name, load in tried.items() for one in at(named[name], *first, load, sustained)),
    )
    return SchemeComparison(
        over_seeds(grid.reset_index(drop=True), ("scheme", "fabric", "workload", "load")),
        pd.Series({name: search.load for name, search in searches.items()}, dtype=float),
        over_seeds(shared, ("scheme",)).set_index("scheme")["jain"].astype(float),
        [one for one in who if one.name not in absent],
        absent,
        f"{duration} of arrivals a run"
        + (f", {sustained} where sustained loads are looked for" if sustained else "")
        + f", {said(drawn)}"
        + (", fairness on the whole leaf-spine" if smaller else ""),
        len(drawn),
    )


def _run(
    wanted: Iterable[tuple[Contender, dict[str, Any], Scenario]],
    folder: Path,
    absent: dict[str, str],
    checked: set[tuple[str, str]],
    **how: Any,
) -> pd.DataFrame:
    """One row for each run. Contenders that cannot run under these conditions are left out of all later runs.

    The sweep checks each run; here there is one check for each set of conditions.
    """
    runs = []
    for one, labels, scenario in wanted:
        ground = (one.name, labels.get("fabric", "fairness"))
        try:
            if ground not in checked:
                checked.add(ground)
                scenario.check()
            runs.append(Run(Measured.of(scenario), {"scheme": one.name, **labels}))
        except ScenarioError as error:
            absent[one.name] = f"{error.key}: {error.message}"
    runs = [point for point in runs if point.labels["scheme"] not in absent]
    if not runs:
        raise ValueError("; ".join(f"{name} cannot run on this fabric: {why}" for name, why in absent.items()))
    result = Sweep(runs, folder).run(**how)
    if result.interrupted:
        raise KeyboardInterrupt
    return result.table()


def _search(
    searches: Mapping[str, Bisection], absent: Mapping[str, str], run: Callable[[Mapping[str, float]], pd.DataFrame]
) -> None:
    """Tries loads, those of all schemes side by side, until each search has ended."""
    while open_ := {
        name: search.next for name, search in searches.items() if search.next is not None and name not in absent
    }:
        # One seed with which it is not sustained is enough.
        for (name, _), of in run(open_).groupby(["scheme", "load"], sort=False):
            searches[str(name)].tell(float(of["load"].iloc[0]), sustains(of["kept up"].min(), of["refused"].max()))


def chosen(known: Sequence[Contender], only: Sequence[str], noun: str = "a contender") -> list[Contender]:
    """The contenders whose name contains one of these words; all if there are none."""
    lost = [word for word in only if not any(word in one.name.split() for one in known)]
    if lost:
        raise ValueError(f"{lost[0]!r} is not {noun}; those are {', '.join(one.name for one in known)}")
    return [one for one in known if not only or any(word in one.name.split() for word in only)]


def _check_fabrics(fabrics: Sequence[str]) -> None:
    unknown = [fabric for fabric in fabrics if fabric not in FABRICS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a fabric of this comparison; those are {', '.join(FABRICS)}")


@dataclass(frozen=True)
class SchemeComparison:
    """The results of the comparison."""

    runs: pd.DataFrame
    """One row per point of the grid: scheme, fabric, workload, load, and the values of `measure`; with several seeds
    their means, and t-intervals.
    """
    sustained: pd.Series[float]
    """By scheme, the highest load sustained on the first fabric; NaN if not even 0.3 is; empty if not looked for."""
    fairness: pd.Series[float]
    """By scheme, Jain's index of 16 flows that share a link."""
    contenders: Sequence[Contender]
    absent: Mapping[str, str]
    """Who could not run on this ground, and why."""
    setting: str
    """The common setting of all runs, in words."""
    seeds: int = 1
    """Number of seeds."""

    @property
    def ok(self) -> bool:
        """Whether the audits of all runs found no faults."""
        return bool((self.runs["audit"] == 1).all())

    def table(self) -> pd.DataFrame:
        """A row for each scheme: means over the runs of the grid, sustained loads, fairness."""
        grid = self.runs.groupby("scheme")[
            ["short mean", "short p99", "medium mean", "long mean", "longest queue KB", "overhead", "undelivered"]
        ].mean()
        return (
            grid.assign(sustained=self.sustained, fairness=self.fairness)
            .reindex([one.name for one in self.contenders])
            .rename_axis("scheme")
        )

    def report(self, path: str | Path) -> Path:
        """Writes the page."""
        from clearway.comparisons.all_schemes_page import CSS, TITLE, page
        from clearway.reports import html

        return html.write(TITLE, page(self), Path(path), CSS)


def _base(name: str, sets: Sequence[tuple[str, str]]) -> Scenario:
    """A scenario of the comparison with the given keys, except for those of other fabrics."""
    scenario = Scenario.load(FOLDER / f"{name}.toml")
    kinds = list(scenario.to_dict()["fabric"])
    return scenario.with_text(
        [(key, value) for key, value in sets if not key.startswith("fabric.") or key.split(".")[1] in kinds]
    )


def _fair_ground(sets: Sequence[tuple[str, str]]) -> tuple[Scenario, bool]:
    """The scenario of the fairness measurement, and whether it uses the whole fabric because the configured one was too
    small.
    """
    ground = _base("fairness", sets)
    try:
        ground.with_(transport="udp").check()
    except ScenarioError:
        whole = _base("fairness", [(key, value) for key, value in sets if not key.startswith("fabric.")])
        whole.with_(transport="udp").check()
        return whole, True
    return ground, False


def measure(result: Result) -> dict[str, float]:
    """The measurements of a run."""
    flows, links = result.flows, result.links
    sizes = pd.concat([result.slowdown(), result.slowdown(by="size")])
    said = [f"{name}{end}" for name in ("mean", "p99") for end in ("", " low", " high")]
    row = {f"{size} {name}": float(sizes.loc[size, name]) for size in sizes.index for name in said}
    delivered = ~np.isnan(flows["delivered_ps"].astype(float))
    # How much was sent is unknown for messages that are not delivered. A short run may have none at all.
    payload = float(flows["bytes"].sum()) if len(flows) and delivered.all() else float("nan")
    of_switches, of_hosts = links["tier"] != "from_host", links["tier"] == "from_host"
    fct = flows["fct_ps"].astype(float)
    rates = np.nan_to_num(flows["bytes"] / fct)
    ended = flows["status"]
    return {
        **row,
        "kept up": kept_up(*(flows[name].astype(float) for name in ("start_ps", "delivered_ps", "bytes"))),
        "undelivered": float(1 - delivered.mean()) if len(flows) else 0.0,
        "refused": float(np.isin(ended, ("rejected", "failed")).mean()) if len(flows) else 0.0,
        "longest queue KB": float(links["queued_bytes_max"][of_switches].max()) / 1e3,
        "overhead": float(links["sent_bytes"][of_hosts].sum()) / payload - 1,
        "dropped": float(result.dropped) / max(1.0, float(links["sent_packets"].sum())),
        "jain": float(rates.sum() ** 2 / (len(rates) * (rates**2).sum())) if rates.any() else float("nan"),
        "cpu us a packet": result.info["cpu_seconds"] * 1e6 / (payload / 1_460),
        "audit": float(result.ok),
    }


def sustains(kept: float, refused: float) -> bool:
    """Whether a load is sustained, given the shares of delivered bytes and of refused messages."""
    return kept >= KEEPS_UP and refused == 0
