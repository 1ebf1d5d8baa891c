"""The figures of R2C2's paper that need no packets: what protocols put on links, and the rates that follow (figures
2, 4, 8 and 18, and rates held against linear programs)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import thread_time

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

import clearway as cw
from clearway import r2c2
from clearway.papers import slices
from clearway.papers.figures import Held, Shown, cell
from clearway.reports.looks import COLOURS

from . import linear_programs, rack
from .rack import draw, lines, table_of

# Figure 2, and by whose name we compute what its columns hold.
COLUMNS = {"Random Packet Spraying": "romm", "Destination Tag": "fixed_ties", "VLB": "vlb", "WLB": "wlb"}
FIGURE_2 = {
    "nearest_neighbor": (4, 4, 0.5, 2.33),
    "uniform": (1, 1, 0.5, 0.76),
    "bit_complement": (0.4, 0.5, 0.5, 0.42),
    "transpose": (0.54, 0.25, 0.5, 0.57),
    "tornado": (0.33, 0.33, 0.5, 0.53),
    "worst_case": (0.21, 0.25, 0.5, 0.31),
}
RHOS_US = (100, 200, 500, 1000, 2000)
# Section 5.1: CPU overhead in percent, as median and 99th percentile.
XEON = {100: (17.6, 73.9), 500: (1.7, 7.9)}
ATOM = {500: (33.5, 71.4)}

LOADS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
BASELINES = ("RPS", "VLB", "Random")


def figure_2() -> Shown:
    """Throughput of routing algorithms on an 8-ary 2-cube, as a fraction of its capacity."""
    ours = r2c2.throughput(algorithms=[*COLUMNS.values(), "rps", "destination_tag"])
    paper = pd.DataFrame(FIGURE_2, index=pd.Index(COLUMNS)).T
    table = pd.concat({"paper": paper, "ours": ours}, axis=1).rename_axis("pattern")
    best = ours[list(COLUMNS.values())].idxmax(axis=1)
    checks = {
        "no single algorithm is best for all patterns": best.nunique() > 1,
        "VLB carries the same of all patterns": bool((ours["vlb"].sub(0.5).abs() < 1e-3).all()),
    }
    # The paper prints two decimals: half of the last one either way.
    rows = [
        (pattern, f"{column}, of capacity", cell(ours, pattern, name), theirs, 0.0051 / theirs)
        for column, name in COLUMNS.items()
        for pattern in FIGURE_2
        for theirs in [cell(paper, pattern, column)]
    ]
    frame = pd.DataFrame(rows, columns=list(Held.COLUMNS))
    return Shown(table, checks, held=[Held("r2c2", "figure 2, from Dally and Towles's book", "paper", frame)])


def figure_4() -> Shown:
    """Rates of two flows on the paths that routing gives them, and the feasible rates if each flow may split its
    packets in any way."""
    # The paper's text does not say which links have a capacity of two; these would limit nothing with one either.
    capacities = {"1-4": 1, "1-3": 2, "2-3": 2, "3-4": 1}
    f1, f2 = {"1-4": 0.5, "1-3": 0.5, "3-4": 0.5}, {"2-3": 1, "3-4": 1}
    rows = {
        "f1 over both paths alike": (2 / 3, 2 / 3, *r2c2.water_filling(capacities, [f1, f2])),
        "f1 over 1-4 alone": (1, 1, *r2c2.water_filling(capacities, [{"1-4": 1}, f2])),
    }
    table = pd.DataFrame(rows, index=["f1, paper", "f2, paper", "f1", "f2"]).T
    both = "f1 over both paths alike"
    fair = cell(table, both, "f1"), cell(table, both, "f2")
    rows_held = [
        (str(how), f"rate of {flow}", of[flow], of[f"{flow}, paper"], 1e-6)
        for how, of in table.iterrows()
        for flow in ("f1", "f2")
    ]
    compared = Held("r2c2", "figure 4", "paper", pd.DataFrame(rows_held, columns=list(Held.COLUMNS)))
    regions = [
        feasible("(b) any division of f1", [(0, 0), (2, 0), (1, 1), (0, 1)], (1.0, 1.0)),
        feasible("(c) as f1's routing has it", [(0, 0), (2, 0), (0, 1)], fair),
    ]
    return Shown(table, {}, draw(regions, sharex=True, sharey=True), [compared])


def feasible(title: str, corners: list[tuple[float, float]], fair: tuple[float, float]) -> Callable[[Axes], None]:
    """The rates that two flows can have together, and which of them are fair."""

    def panel(axes: Axes) -> None:
        axes.add_patch(Polygon(corners, color=COLOURS[0], alpha=0.2, linewidth=0))
        axes.plot(*fair, marker="*", markersize=11, color=COLOURS[1], linestyle="", label="max-min fair")
        axes.set(title=title, xlabel="rate of f1", ylabel="rate of f2", xlim=(0, 2.2), ylim=(0, 1.2))
        axes.legend(fontsize=7)

    return panel


def rates_by_linear_programs() -> Shown:
    """Rates of flows with weights and demands on a 4 x 4 torus, beside the optimum of linear programs for the same
    flows."""
    fabric = {"torus": {"dims": [4, 4], "rate": "10Gbps", "host_rate": "40Gbps"}}
    draws = np.random.default_rng(16)
    rows = {
        (routing, number): against_linear_program(fabric, routing, flows, draws)
        for routing in r2c2.ROUTINGS
        for number, flows in enumerate((2, 6, 12, 24, 48))
    }
    table = pd.DataFrame(rows).T.rename_axis(["routing", "set"])
    held = pd.DataFrame(
        [
            {
                "bucket": routing,
                "statistic": f"{what}, Gbps",
                "ours": of[ours],
                "theirs": of[theirs],
                "within": WITHIN_PROGRAM,
            }
            for routing in r2c2.ROUTINGS
            for each in [pd.DataFrame(table.loc[routing])]
            for of in [each.iloc[int(each["off"].argmax())]]
            for what, ours, theirs in (
                ("the rate farthest off", "ours", "program"),
                ("all rates of that set", "sum", "program's sum"),
            )
        ]
    )
    program = "the MP algorithm's linear programs (Radunovic, Le Boudec, ToN 2007)"
    against = f"{program}, 92 flows a routing protocol on a 4 x 4 torus"
    return Shown(table, held=[Held("r2c2", against, "linear program", held, seeds="16")])


# Link weights are single precision, the same on both sides; the rest is double.
WITHIN_PROGRAM = 1e-6


def against_linear_program(
    fabric: r2c2.Fabric, routing: str, flows: int, draws: np.random.Generator
) -> pd.Series[float]:
    """Of this many random flows, the rate that is farthest from the linear program's, and the sums of rates."""
    ends = [tuple(int(host) for host in draws.choice(16, 2, replace=False)) for _ in range(flows)]
    weights = draws.integers(1, 5, flows).astype(float)
    demands = np.where(draws.random(flows) < 0.25, draws.uniform(0.1, 5, flows), np.inf)
    asked = [
        r2c2.Flow(src, dst, routing, weight=weight, demand_gbps=demand)
        for (src, dst), weight, demand in zip(ends, weights, demands)
    ]
    ours = np.array(r2c2.rates(asked, fabric=fabric, headroom=0.05))
    # One column per flow and one row per link, hosts' links among them.
    loads = pd.DataFrame(
        {
            flow: {
                **{
                    (of["from_node"], of["to_node"]): of["weight"]
                    for of in r2c2.link_weights(src, dst, routing, fabric=fabric).to_dict("records")
                },
                ("host", src): 1.0,
                (dst, "host"): 1.0,
            }
            for flow, (src, dst) in enumerate(ends)
        }
    ).fillna(0.0)
    capacity = np.array([0.95 * (40 if "host" in link else 10) for link in loads.index])
    program = linear_programs.max_min(capacity, loads.to_numpy(), weights, demands)
    off = np.abs(ours / program - 1)
    worst = int(off.argmax())
    return pd.Series(
        {
            "flows": flows,
            "ours": ours[worst],
            "program": program[worst],
            "off": off[worst],
            "sum": ours.sum(),
            "program's sum": program.sum(),
        }
    )


def figure_8() -> Shown:
    """CPU overhead of computing rates on a core of this machine, by the interval rho, beside the paper's on a 2.4 GHz
    Xeon; and with the computation of the fair first rate of each flow."""
    # The traffic of section 5.2: of flows of 10 MB, as in the emulator, all would last longer than any rho.
    scenario = cw.Scenario.load(rack.HERE / "rack.toml").with_({"traffic.0.flows": round(100_000 * rack.scale)})
    if (part := slices.current()) is not None:
        few = r2c2.recompute_times(scenario.with_({"traffic.0.flows": 2_000}), RHOS_US)
        part.value("flows at each computation, of 2,000", few[["rho_us", "at_us", "flows"]])
        raise slices.Enough
    times = r2c2.recompute_times(scenario, RHOS_US)
    starts = r2c2.start_times(scenario)
    by_rho = times.groupby("rho_us")
    table = pd.DataFrame(
        {
            "recomputations": by_rho.size(),
            "flows": by_rho["flows"].median(),
            "flows p99": by_rho["flows"].quantile(0.99),
            "took us": by_rho["took_us"].median(),
            "overhead %": 100 * by_rho["overhead"].median(),
            "overhead p99 %": 100 * by_rho["overhead"].quantile(0.99),
        }
    )
    with_starts = {rho: overhead_with_starts(times[times["rho_us"] == rho], starts, rho) for rho in RHOS_US}
    table["computations of a node"] = pd.Series(
        {rho: 1 + rho * len(starts) / starts["at_us"].max() / NODES for rho in RHOS_US}
    )
    for column, quantile in (("with starts %", 0.5), ("with starts p99 %", 0.99)):
        table[column] = pd.Series({rho: 100 * float(np.quantile(of, quantile)) for rho, of in with_starts.items()})
    for name, paper in (("Xeon", XEON), ("Atom", ATOM)):
        table[f"{name} %"] = pd.Series({rho: median for rho, (median, _) in paper.items()})
        table[f"{name} p99 %"] = pd.Series({rho: p99 for rho, (_, p99) in paper.items()})
    at = table.loc[500]
    checks = {
        "a longer interval costs less of a core": table["overhead %"].is_monotonic_decreasing,
        "a longer interval has fewer flows": table["flows"].is_monotonic_decreasing,
        f"500 us is feasible, {at['overhead p99 %']:.1f}% at the 99th percentile "
        "(paper: 7.9% on a Xeon, 71.4% on an Atom)": bool(at["overhead p99 %"] < 100),
        f"and with the computations at flow starts, {at['with starts p99 %']:.1f}%": bool(
            at["with starts p99 %"] < 100
        ),
    }
    note = (
        "The paper's numbers are of a Xeon of 2012 and an Atom of 2009, and these of a core of this machine. "
        "They stand side by side; what must hold is that the interval is feasible."
    )
    return Shown(table, checks, draw([overheads(table)]), note=note)


NODES = 512


def overhead_with_starts(at_intervals: pd.DataFrame, starts: pd.DataFrame, rho_us: float) -> npt.NDArray[np.float64]:
    """The time for which a node's core is busy, one number per node and interval: the computation at its end,
    which all nodes do, and one at the start of each of its own flows in it."""
    ends = at_intervals["at_us"].to_numpy()
    interval = np.searchsorted(ends, starts["at_us"].to_numpy())
    within = interval < len(ends)
    busy = np.zeros((NODES, len(ends)))
    np.add.at(busy, (starts["host"].to_numpy()[within], interval[within]), starts["took_us"].to_numpy()[within])
    return np.asarray((busy + at_intervals["took_us"].to_numpy()) / rho_us).ravel()


def overheads(table: pd.DataFrame) -> Callable[[Axes], None]:
    """The 99th percentile of the overhead over rho."""

    def panel(axes: Axes) -> None:
        shown = {
            "this machine": "overhead p99 %",
            "with flow starts": "with starts p99 %",
            "paper, Xeon": "Xeon p99 %",
            "paper, Atom": "Atom p99 %",
        }
        for colour, (name, column) in zip(COLOURS, shown.items()):
            of = table[column].dropna()
            axes.plot(
                of.index, of, marker="o", linestyle="" if name.startswith("paper") else "-", color=colour, label=name
            )
        axes.axhline(100, color="#6b6b6b", linestyle=":")
        axes.set(
            title="Computing rates, 512 nodes",
            xlabel="rho (us)",
            ylabel="p99 of CPU overhead (%)",
            xscale="log",
            yscale="log",
        )
        axes.set_xticks(table.index, [f"{rho:g}" for rho in table.index])
        axes.legend(fontsize=7)

    return panel


def figure_18() -> Shown:
    """Aggregate throughput with a routing protocol selected for each flow, relative to all RPS, all VLB and a random
    one for each, by the share of nodes that send."""
    search = partial(selected, nodes_along=max(round(8 * rack.scale), 3))
    rows = dict(zip(LOADS, slices.mapped(search, LOADS, ThreadPoolExecutor())))
    table = table_of(rows, "L")
    ratios = pd.DataFrame({name: table["Adaptive"] / table[name] for name in BASELINES})
    table = pd.concat([table, ratios.add_prefix("to ")], axis=1)
    checks = {
        **{
            f"never less than {name}: at least {of.min():.3f} times": bool((of > 1 - 1e-6).all())
            for name, of in ratios.items()
        },
        "VLB is the better of the two at the lowest load, RPS at the highest": bool(
            table["VLB"].iloc[0] > table["RPS"].iloc[0] and table["RPS"].iloc[-1] > table["VLB"].iloc[-1]
        ),
        f"a mixture is better than either, by up to {100 * (ratios[['RPS', 'VLB']].min(axis=1).max() - 1):.0f}%": bool(
            (ratios[["RPS", "VLB"]].min(axis=1) > 1.01).any()
        ),
    }
    panels = [
        lines("Adaptive, normalised", ratios, "L", "ratio of aggregate throughputs"),
        lines("Flows that have VLB", 100 * table[["VLB share"]], "L", "%"),
    ]
    note = "The paper prints curves and no number, only which of them is higher."
    return Shown(table, checks, draw(panels), note=note)


def selected(load: float, nodes_along: int) -> pd.Series[float]:
    """A load's aggregate throughputs in Gbps, and what the search took."""
    fabric = {"torus": {"dims": [nodes_along] * 3}}
    draws = np.random.default_rng([18, round(100 * load)])
    pairs = senders(nodes_along**3, load, draws)

    def aggregate(routings: list[str]) -> float:
        return sum(r2c2.rates([(*pair, routing) for pair, routing in zip(pairs, routings)], fabric=fabric))

    begin = thread_time()
    found = r2c2.select_routing(pairs, ("rps", "vlb"), fabric=fabric)
    took = thread_time() - begin
    return pd.Series(
        {
            "flows": len(pairs),
            "Adaptive": aggregate(found.routings),
            "RPS": aggregate(["rps"] * len(pairs)),
            "VLB": aggregate(["vlb"] * len(pairs)),
            "Random": aggregate([str(routing) for routing in draws.choice(["rps", "vlb"], len(pairs))]),
            "VLB share": found.routings.count("vlb") / len(pairs),
            "generations": found.generations,
            "evaluations": found.evaluations,
            "CPU seconds": took,
        }
    )


def senders(nodes: int, load: float, draws: np.random.Generator) -> list[tuple[int, int]]:
    """A share of nodes, each with a flow to another node, no two to the same."""
    count = max(round(load * nodes), 1)
    while True:
        sources, destinations = draws.permutation(nodes)[:count], draws.permutation(nodes)[:count]
        if (sources != destinations).all():
            return list(zip(sources.tolist(), destinations.tolist()))
