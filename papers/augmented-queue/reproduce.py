"""The figures and tables of the Augmented Queue paper (SIGCOMM 2023), the paper's numbers beside ours.

    python papers/augmented-queue/reproduce.py table-2

Each prints a table and whether it shows what the paper says, and leaves a CSV, and of a figure a picture, in
`out/augmented-queue`. What this build has run before is not run again.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import matplotlib as mpl
import pandas as pd
import typer
from matplotlib.axes import Axes
from matplotlib.ticker import ScalarFormatter

sys.path.insert(0, str(Path(__file__).parents[1]))

import figures
from figures import Keys, Shown

import clearway as cw
from clearway._plots import COLOURS, STYLE, Picture

HERE = Path(__file__).parent
OUT = Path("out/augmented-queue")

# The physical queue is that of ns-3's own example of DCTCP at 10 Gbps and 10 us: RED on the queue as it is now, which marks
# with a probability that grows from 0 at 50 packets to 1/50 at 150 and to 1 at 300, and drops what can't be marked.
RED = {"gentle_ramp": {"min": f"{50 * 1538}B", "max": f"{150 * 1538}B", "probability_max": 0.02}}
PQ: Keys = {"sharing": "physical_queue", "switch.marking": RED}
# Under AQ it only drops, and only when it is full.
AQ: Keys = {"sharing": "aq"}
PRL: Keys = {**PQ, "sharing": "rate_limiter"}
# Table 3 of the paper has it below its guarantees on idle links, so it is ElasticSwitch without its work conservation.
DRL: Keys = {**PQ, "sharing": {"elastic_switch": {"rate_allocation": "guarantees_only"}}}
WAYS = {"PQ": PQ, "AQ": AQ, "PRL": PRL, "DRL": DRL}
# 65 packets, as DCTCP's paper has it for 10 Gbps.
DCTCP_FEEDBACK = {"ecn": {"step": {"threshold": "100KB"}}}

# Of the bytes on the wire, those that are payload.
PAYLOAD = (1538 - 90) / 1538


def run(scenario: str, name: str, keys: Keys) -> cw.Result:
    """A scenario with some keys set."""
    return figures.run(HERE / f"{scenario}.toml", name, keys, OUT)


def gbps(result: cw.Result, after_s: float = 0.1) -> dict[str, float]:
    """Mean rate of each entity's payload, once flows have found their rates."""
    rates = result.entity_rates()
    mean = rates[rates.index > after_s + 1e-9].mean() / 1e9
    return {str(name): float(rate) for name, rate in mean.items()}


def completion_s(result: cw.Result, traffic: str) -> float:
    """From the first start of a class to its last delivery."""
    flows = result.flows.to_pandas()
    flows = flows[flows["class"] == traffic]
    assert flows["delivered_ps"].notna().all(), f"{result.name}: not all of {traffic} was delivered"
    return float(flows["delivered_ps"].max() - flows["start_ps"].min()) / 1e12


def fairness(result: cw.Result) -> float:
    """Section 5.2: the shorter of two entities' completion times over the longer."""
    shorter, longer = sorted([completion_s(result, "a"), completion_s(result, "b")])
    return shorter / longer


def evenness(result: cw.Result) -> float:
    """The smaller of two entities' rates over the greater, as long as both have something to send."""
    both = min(completion_s(result, "a"), completion_s(result, "b"))
    rates = result.entity_rates()
    smaller, greater = sorted(rates[rates.index <= both].mean())
    return float(smaller / greater)


def within(value: float, expected: float, share: float = 0.04) -> bool:
    return abs(value / expected - 1) <= share


def draw(panels: Sequence[Callable[[Axes], object]], **shared: bool) -> Picture:
    """Panels side by side in the style of the package."""
    with mpl.rc_context(STYLE):
        picture = Picture(figsize=(4.8 * len(panels), 3.0), layout="constrained")
        for axes, panel in zip(picture.subplots(1, len(panels), squeeze=False, **shared)[0], panels):
            panel(axes)
        return picture


def lines(axes: Axes, table: pd.DataFrame, title: str, x: str, y: str, *, log: bool = False) -> None:
    """A line for each column, by the index."""
    for colour, (name, values) in zip(COLOURS, table.items()):
        axes.plot(table.index, values, marker="o" if len(table) < 20 else "", color=colour, label=str(name))
    # Room for the legend.
    axes.set(xlabel=x, ylabel=y, title=title, ylim=(0, 1.3 * float(table.max().max())))
    if log:
        axes.set_xscale("log", base=2)
        axes.set_xticks(list(table.index))
        axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.legend(fontsize=8, ncols=3, loc="upper right")


def controls(*transports: str) -> dict[str, Any]:
    """The congestion controls of entities A and B."""
    keys: dict[str, Any] = {}
    for index, transport in enumerate(transports):
        keys[f"traffic.{index}.transport"] = transport
        if transport == "dctcp":
            keys[f"entity.{index}.feedback"] = DCTCP_FEEDBACK
    return keys


def two_by_two(first: tuple[int, str], second: tuple[int, str], sharing: Keys) -> list[float]:
    """Rates of two entities of so many flows each under a congestion control each."""
    name = " ".join(f"{flows} {control}" for flows, control in (first, second)) + f" {sharing['sharing']}"
    senders = {"traffic.0.senders": hosts(0, first[0]), "traffic.1.senders": hosts(10, second[0])}
    return list(gbps(run("table-2", name, {**sharing, **controls(first[1], second[1]), **senders})).values())


def hosts(first: int, count: int) -> str:
    return f"{first}-{first + count - 1}"


NAMES = {"cubic": "CUBIC", "newreno": "NewReno", "illinois": "Illinois", "dctcp": "DCTCP", "swift": "Swift"}

# Paper's Gbps under PQ and under AQ.
TABLE_2 = {
    ((5, "cubic"), (5, "cubic")): ((4.7, 4.7), (4.7, 4.7)),
    ((5, "cubic"), (5, "dctcp")): ((0.7, 8.7), (4.6, 4.7)),
    ((5, "newreno"), (5, "dctcp")): ((0.5, 8.9), (4.7, 4.7)),
    ((5, "illinois"), (5, "dctcp")): ((1.7, 7.7), (4.6, 4.7)),
    ((5, "cubic"), (5, "swift")): ((9.1, 0.2), (4.7, 4.6)),
    ((5, "dctcp"), (5, "swift")): ((9.2, 0.1), (4.7, 4.6)),
    ((10, "dctcp"), (5, "newreno")): ((9.1, 0.3), (4.7, 4.7)),
    ((10, "dctcp"), (5, "swift")): ((9.2, 0.1), (4.7, 4.6)),
}
TABLE_2_FOUR = ((8.9, 0.1, 0.2, 0.1), (2.4, 2.3, 2.4, 2.2))


def figure_1() -> Shown:
    """Throughput of two congestion controls of ten flows each in a physical queue."""
    paper = {("cubic", "dctcp"): "0.7 + 8.7", ("cubic", "swift"): "Swift below 0.2", ("dctcp", "swift"): "Swift below 0.2"}
    mixed = [(a, b) for i, a in enumerate(FOUR) for b in FOUR[i + 1 :]]
    rows = {f"{NAMES[a]} + {NAMES[b]}": two_by_two((10, a), (10, b), PQ) for a, b in mixed}
    table = pd.DataFrame(rows, index=["first", "second"]).T
    table["paper"] = [paper.get(pair, "") for pair in mixed]

    def bars(axes: Axes) -> None:
        for place, (pair, row) in enumerate(zip(mixed, rows.values())):
            for side, (control, rate) in enumerate(zip(pair, row)):
                axes.bar(place + 0.4 * side - 0.2, rate, 0.38, color=COLOURS[FOUR.index(control)])
        axes.set_xticks(range(len(rows)), [name.replace(" + ", "\n") for name in rows], fontsize=8)
        axes.set(ylabel="Gbps", title="Two controls of ten flows each in a physical queue", ylim=(0, 11))
        patches = [mpl.patches.Patch(color=colour) for colour in COLOURS[: len(FOUR)]]
        axes.legend(patches, [NAMES[control] for control in FOUR], ncols=4, fontsize=8)

    checks = {"DCTCP takes at least five times what CUBIC gets": rows["CUBIC + DCTCP"][1] >= 5 * rows["CUBIC + DCTCP"][0]}
    checks |= {f"{name}: Swift starves": row[1] <= row[0] / 5 for name, row in rows.items() if name.endswith("Swift")}
    return Shown(table, checks, draw([bars]))


FOUR = ["cubic", "newreno", "dctcp", "swift"]


def table_2() -> Shown:
    """Throughput of entities with a congestion control each, in Gbps."""
    rows, checks = {}, {}

    def add(name: str, paper: Sequence[Sequence[float]], ours: Sequence[Sequence[float]]) -> None:
        cells = [" + ".join(f"{rate:.1f}" for rate in rates) for pair in zip(paper, ours) for rates in pair]
        rows[name] = dict(zip(("PQ, paper", "PQ, ours", "AQ, paper", "AQ, ours"), cells))
        share = 10 * PAYLOAD / len(ours[1])
        checks[f"{name}: each within 4% of its share under AQ"] = all(within(rate, share) for rate in ours[1])
        ranks = [sorted(range(len(rates)), key=lambda i, r=rates: -r[i]) for rates in (paper[0], ours[0])]
        winner, rest = ranks[0][0], paper[0][ranks[0][1]]
        if paper[0][winner] >= 5 * rest:
            most = max(rate for i, rate in enumerate(ours[0]) if i != winner)
            checks[f"{name}: PQ's winner is the paper's, by at least 5:1"] = ours[0][winner] >= 5 * most

    for (first, second), paper in TABLE_2.items():
        name = " + ".join(f"{flows} {NAMES[control]}" for flows, control in (first, second))
        add(name, paper, [two_by_two(first, second, sharing) for sharing in (PQ, AQ)])
    four = [list(gbps(run("table-2-four", str(sharing["sharing"]), sharing)).values()) for sharing in (PQ, AQ)]
    add("1 UDP + 3 CUBIC + 3 DCTCP + 3 Swift", TABLE_2_FOUR, four)
    return Shown(pd.DataFrame(rows).T, checks)


def figure_6() -> Shown:
    """Completion time of one entity's web search flows by its number of VMs, over that with PQ."""
    table = pd.DataFrame(index=pd.Index([1, 2, 4, 8], name="VMs"), columns=list(WAYS), dtype=float)
    for vms in table.index:
        keys = {"traffic.0.senders": hosts(0, vms), "traffic.0.receivers": hosts(8, vms)}
        for way, sharing in WAYS.items():
            table.loc[vms, way] = completion_s(run("figure-6", f"{way} {vms}", {**sharing, **keys}), "a")
    table = table.div(table["PQ"], axis=0)
    checks = {"AQ takes as long as PQ, within 5%": bool((table["AQ"] - 1).abs().max() <= 0.05)}
    checks |= {f"{way} takes longer the more VMs": table[way].is_monotonic_increasing for way in ("PRL", "DRL")}
    title = "Completion time over PQ's"
    return Shown(table, checks, draw([lambda axes: lines(axes, table, title, "VMs of the entity", "normalised", log=True)]))


def figure_7() -> Shown:
    """Fairness between entity A of one VM and entity B of several: by completion times, and by rates while both send."""
    vms = pd.Index(range(1, 9), name="VMs of B")
    times, rates = (pd.DataFrame(index=vms, columns=list(WAYS), dtype=float) for _ in range(2))
    for count in vms:
        for way, sharing in WAYS.items():
            result = run("figure-7", f"{way} {count}", {**sharing, "traffic.1.senders": hosts(1, count)})
            times.loc[count, way], rates.loc[count, way] = fairness(result), evenness(result)
    checks = {"AQ is fair for any number of VMs": bool(times["AQ"].min() >= 0.95)}
    checks |= {"PQ gives B the more the more VMs it has": rates["PQ"].is_monotonic_decreasing}
    checks |= {f"{way} grows unfair": bool(times.loc[8, way] < 0.8 * times.loc[1, way]) for way in ("PQ", "PRL", "DRL")}
    table = times.add_suffix(" times").join(rates.add_suffix(" rates"))

    def panel(frame: pd.DataFrame, title: str) -> Callable[[Axes], None]:
        return lambda axes: lines(axes, frame, title, "VMs of entity B", "lesser over greater")

    panels = [panel(times, "Fairness of completion times"), panel(rates, "Fairness of rates while both send")]
    return Shown(table, checks, draw(panels, sharey=True))


def figure_8() -> Shown:
    """Throughput of an entity of one flow, A, beside one of several, B."""
    ways = {"PQ": (PQ, 1), "AQ, 1:1": (AQ, 1), "AQ, 1:2": (AQ, 2)}
    table, checks = pd.DataFrame(index=pd.Index([2**i for i in range(7)], name="flows of B")), {}
    for way, (sharing, weight) in ways.items():
        for flows in table.index:
            keys = {"entity.1.request.0.share.weight": weight, "traffic.1.flows": int(flows)}
            rates = gbps(run("figure-8", f"{way} {flows}", {**sharing, **keys}))
            for entity, rate in rates.items():
                table.loc[flows, f"{way}, {entity}"] = rate
        if sharing is AQ:
            shares = {"A": 10 * PAYLOAD / (1 + weight), "B": 10 * PAYLOAD * weight / (1 + weight)}
            ok = all(within(rate, share) for name, share in shares.items() for rate in table[f"{way}, {name}"])
            checks[f"{way}: within 4% of the weights' shares"] = ok
    checks["PQ: even with a flow each"] = within(table.loc[1, "PQ, A"], table.loc[1, "PQ, B"], 0.1)
    checks["PQ: 64 flows starve one"] = table.loc[64, "PQ, A"] < table.loc[64, "PQ, B"] / 20

    def panel(way: str) -> Callable[[Axes], None]:
        mine = table[[f"{way}, A", f"{way}, B"]].rename(columns=lambda name: f"entity {name[-1]}")
        return lambda axes: lines(axes, mine, way, "flows of entity B", "Gbps", log=True)

    return Shown(table, checks, draw([panel(way) for way in ways], sharey=True))


def figure_9() -> Shown:
    """Throughput of TCP and UDP entities that come and go, in Gbps, at the end of each step of 100 ms."""
    rates = {way: run("figure-9", way, sharing).entity_rates() / 1e9 for way, sharing in (("PQ", PQ), ("AQ", AQ))}
    steps, checks = {}, {}
    for way, rate in rates.items():
        for end in range(1, 9):
            # The last 70 ms: it takes as long to fill what another has left.
            last = rate[(rate.index > end / 10 - 0.07 + 1e-9) & (rate.index < end / 10 + 1e-9)].mean()
            active = last[[name for name, (start, stop) in ACTIVE.items() if start < end <= stop]]
            steps[f"{way}, {end - 1}00 to {end}00 ms"] = {"n": len(active), **active.round(2)}
            if way == "AQ":
                used = active / (10 * PAYLOAD / len(active))
                checks[f"AQ, {end - 1}00 to {end}00 ms: {len(active)} entities, each over 95% of 1/n"] = bool(used.min() > 0.95)
            elif end in (5, 7):
                checks[f"PQ, {end - 1}00 to {end}00 ms: UDP grabs almost all"] = float(active.filter(like="UDP").sum()) > 8
    table = pd.DataFrame(steps).T.astype({"n": int})

    def panel(way: str) -> Callable[[Axes], None]:
        series = rates[way].set_axis(rates[way].index * 1e3)
        return lambda axes: lines(axes, series, f"Using {way}", "time (ms)", "Gbps")

    return Shown(table, checks, draw([panel(way) for way in rates], sharey=True))


# Between which steps of 100 ms each entity of figure 9 has something to send.
ACTIVE = {"TCP 1": (0, 8), "TCP 2": (1, 8), "TCP 3": (2, 8), "TCP 4": (3, 8), "UDP 1": (4, 6), "UDP 2": (5, 7)}


PAIRS = [("cubic", "dctcp"), ("newreno", "dctcp"), ("illinois", "dctcp"), ("cubic", "swift"), ("dctcp", "swift")]


def figure_10() -> Shown:
    """Two entities of four VMs with a congestion control each: fairness, and completion time of both together in s."""
    names = pd.Index([f"{NAMES[a]} + {NAMES[b]}" for a, b in PAIRS])
    fair, total = (pd.DataFrame(index=names, columns=list(WAYS), dtype=float) for _ in range(2))
    for name, pair in zip(names, PAIRS):
        for way, sharing in WAYS.items():
            result = run("figure-10", f"{way} {name}", {**sharing, **controls(*pair)})
            fair.loc[name, way] = fairness(result)
            total.loc[name, way] = max(completion_s(result, "a"), completion_s(result, "b"))
    checks = {"AQ is fair": bool(fair["AQ"].min() >= 0.95), "PQ is not: around 0.6": bool(fair["PQ"].max() < 0.8)}
    checks |= {"AQ takes as long as PQ, within 5%": bool((total["AQ"] / total["PQ"] - 1).abs().max() <= 0.05)}
    checks |= {f"{way} takes longer": bool((total[way] > 1.05 * total["PQ"]).all()) for way in ("PRL", "DRL")}

    def bars(axes: Axes, frame: pd.DataFrame, title: str) -> None:
        for index, (colour, way) in enumerate(zip(COLOURS, WAYS)):
            axes.bar([place + 0.2 * index - 0.3 for place in range(len(frame))], frame[way], 0.18, color=colour, label=way)
        axes.set_xticks(range(len(frame)), [name.replace(" + ", "\n") for name in frame.index], fontsize=8)
        axes.set(title=title, ylim=(0, 1.2 * float(frame.max().max())))
        axes.legend(fontsize=8, ncols=4)

    panels = [lambda axes: bars(axes, fair, "Entity fairness"), lambda axes: bars(axes, total, "Total completion time (s)")]
    return Shown(fair.add_suffix(" fair").join(total.add_suffix(" s")), checks, draw(panels))


def table_3() -> Shown:
    """Outbound and inbound rates of VM A over 100 ms each, least to most, in Gbps on the wire."""
    paper = {
        "PQ": ("23.1 to 23.6", "23.2 to 23.6"),
        "PRL": ("4.8 to 5.1", "14.6 to 15.3"),
        "DRL": ("3.1 to 4.9", "3.3 to 4.8"),
        "AQ": ("4.8 to 5.3", "4.9 to 5.1"),
    }
    rows, ours = {}, {}
    for way, ranges in paper.items():
        # PRL has all VMs limited, the others' limits follow from A's.
        others = {"entity.1.request": [{"share": {"absolute": "5Gbps"}, "position": "ingress"}]} if way == "PRL" else {}
        result = run("table-3", way, {**WAYS[way], **others})
        row = {}
        data = [result.entity_rates(received=received)["A"] / PAYLOAD / 1e9 for received in (False, True)]
        for direction, theirs, sent, answered in zip(("out", "in"), ranges, data, reversed(data)):
            # Each full packet of the other direction is answered with a header.
            rates = (sent + answered * (90 / 1538))[sent.index > 0.1 + 1e-9]
            ours[way, direction] = (rates.min(), rates.max())
            row |= {f"{direction}, paper": theirs, f"{direction}, ours": f"{rates.min():.1f} to {rates.max():.1f}"}
        rows[way] = row
    checks = {
        f"AQ's {direction}bound rate is 4.8 to 5.3": 4.8 <= ours["AQ", direction][0] and ours["AQ", direction][1] <= 5.3
        for direction in ("out", "in")
    }
    checks["PQ limits nothing"] = min(ours["PQ", "out"][0], ours["PQ", "in"][0]) > 20
    checks["PRL limits what A sends"] = ours["PRL", "out"][1] <= 5.1
    checks["PRL: three times that comes in"] = within(ours["PRL", "in"][1], 15)
    checks["DRL is within the profile, and below it at times"] = all(ours["DRL", way][1] <= 5.1 for way in ("out", "in"))
    return Shown(pd.DataFrame(rows).T, checks)


def table_4() -> Shown:
    """An entity at 25 Gbps in its own physical queue, and under an AQ of that rate on a link of 100 Gbps."""
    paper = {"cubic": (23.6, 698, 23.6, 687), "newreno": (23.6, 721, 23.6, 712), "dctcp": (23.5, 88, 23.6, 86)}
    rows, checks = {}, {}
    # A testbed's links, and those of the paper's simulations.
    for link, (control, numbers) in ((link, item) for link in ("1us", "10us") for item in paper.items()):
        keys: dict[str, Any] = {"traffic.0.transport": control, "fabric.dumbbell.propagation": link}
        alone: dict[str, Any] = {"sharing": "physical_queue", "fabric.dumbbell.bottleneck_rate": "25Gbps"}
        if control == "dctcp":
            # DCTCP's 65 packets for 10 Gbps, in proportion to the rate.
            keys["entity.0.feedback"] = {"ecn": {"step": {"threshold": "250KB"}}}
            alone["switch.marking.step.threshold"] = "250KB"
        ours: list[float] = []
        for sharing, queue in ((alone, "physical"), (AQ, "virtual")):
            result = run("table-4", f"{control} {link} {sharing['sharing']}", {**keys, **sharing})
            waits = result.waits.to_pandas()
            ours += [gbps(result)["A"], float(waits.loc[waits["queue"] == queue, "p95_ns"].iloc[0]) / 1e3]
        name = f"{NAMES[control]}, links of {link}"
        rows[name] = {
            column: f"{mine:.4g} ({theirs})"
            for column, mine, theirs in zip(("PQ Gbps", "PQ 95% us", "AQ Gbps", "AQ 95% us"), ours, numbers)
        }
        checks[f"{name}: throughput within 2.3%"] = within(ours[2], ours[0], 0.023)
        checks[f"{name}: 95th percentile of delay within 2.3%"] = within(ours[3], ours[1], 0.023)
    return Shown(pd.DataFrame(rows).T.rename_axis("ours (paper)"), checks)


def figure_12() -> Shown:
    """Memory of AQs, in bytes: 15 a row as in the paper, and what our hash table of them takes."""
    example = ["cargo", "run", "--quiet", "--profile", "fast-build", "-p", "clearway-schemes", "--example", "aq_table"]
    text = subprocess.run(example, check=True, text=True, stdout=subprocess.PIPE).stdout
    measured = {int(n): float(each) for n, each in re.findall(r"^ *(\d+) +[\d.]+ +([\d.]+) ", text, re.MULTILINE)}
    table = pd.DataFrame({"rows": {n: 15 * n for n in measured}, "table": {n: round(n * each) for n, each in measured.items()}})
    table.index.name = "AQs"
    checks = {"a million AQs in tens of MB": bool(table.loc[1_000_000].max() < 100e6)}

    def panel(axes: Axes) -> None:
        for colour, (name, each) in zip(COLOURS, (("15 bytes a row, as the paper", 15), ("our hash table", measured[1_000_000]))):
            counts = [10**i for i in range(3, 8)]
            axes.plot(counts, [n * each / 1e6 for n in counts], marker="o", color=colour, label=name)
        axes.set(xscale="log", yscale="log", xlabel="AQs", ylabel="MB", title="Memory of a switch")
        axes.legend(fontsize=8)

    return Shown(table, checks, draw([panel]))


FIGURES: dict[str, Callable[[], Shown]] = {
    "figure-1": figure_1,
    "figure-6": figure_6,
    "figure-7": figure_7,
    "figure-8": figure_8,
    "figure-9": figure_9,
    "figure-10": figure_10,
    "figure-12": figure_12,
    "table-2": table_2,
    "table-3": table_3,
    "table-4": table_4,
}


def main(
    which: Annotated[list[str] | None, typer.Argument(help="Figures and tables, such as table-2; or all.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List them.")] = False,
) -> None:
    """Reproduces figures and tables of the Augmented Queue paper."""
    figures.show(FIGURES, None if list_ else which, OUT)


if __name__ == "__main__":
    typer.run(main)
