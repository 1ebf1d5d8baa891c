"""The figures of R2C2's evaluation (SIGCOMM 2015, sections 3.2, 5 and 6), the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from clearway.papers import figures
from clearway.papers.figures import Held, Shown, cell

from . import overhead, rack
from .rack import INTERVALS, READINGS, SCHEMES, Runs, bars, cdf, draw, lines, runs, table_of

# Of figure 9: what joins 512 nodes. The paper does not say how long the sides of its 2D torus are.
FABRICS = {
    "3D torus": ("torus", (8, 8, 8)),
    "3D mesh": ("mesh", (8, 8, 8)),
    "2D torus": ("torus", (16, 32)),
}
RHOS = ("50us", "100us", "250us", "500us", "1ms", "2ms")
HEADROOMS = (0.0, 0.05, 0.1, 0.2)
RHO = "500us"
# Rates at every event are the ideal of figures 15 and 16. At 100 ns that is 20 events a microsecond, each of which
# takes as long to be heard by all, so that hundreds of nodes have different views of hundreds of flows: there it is an
# interval a tenth of what is judged.
IDEAL = {"100ns": "50us"}


# How far ours may be off either way. Of a simulation, of which the paper leaves open how many flows, which TCP and what
# buffers: a quarter. Of what follows from sizes and hops: a twentieth or so, for the paper rounds its 8,176 bytes to 8
# KB and its 6.012 hops to 6.
WITHIN, WITHIN_ARITHMETIC = 0.25, 0.06
# Of ratios to TCP, which the paper prints with three digits: a twentieth, which is what draws of the flows leave. They
# are of the one TCP and the one buffer that SCHEMES names, whatever else would come nearer.
WITHIN_TCP = 0.05
# The numbers of sections 3.2, 5 and 6, by figure: what, and which flows.
Rows = list[tuple[str, str, float, float]]


def held(rows: Rows, scheme: str = "r2c2", within: float = WITHIN, kind: figures.Kind = "paper") -> Held:
    """Ours beside the paper's: bucket, statistic, ours, theirs."""
    seeds = f"{rack.SEEDS[0]} to {rack.SEEDS[-1]}" if len(rack.SEEDS) > 1 else str(rack.SEEDS[0])
    table = pd.DataFrame([(*row, within) for row in rows], columns=list(Held.COLUMNS))
    against = (
        "SIGCOMM 2015, sections 3.2, 5 and 6"
        if kind == "paper"
        else "bytes of a broadcast and hops of a flow, by arithmetic"
    )
    return Held(scheme, against, kind, table, seeds)


def of_both(say: Callable[[str], Rows], within: float = WITHIN) -> list[Held]:
    """The same of either reading."""
    names = {"R2C2": "r2c2", "R2C2 alone": 'r2c2, first_rate = "alone"'}
    return [held(say(scheme), names[scheme], within) for scheme in READINGS]


def near(ours: float, paper: float, within: float = WITHIN) -> bool:
    """Whether ours is the paper's number, give or take a quarter."""
    return bool(abs(ours / paper - 1) <= within)


def arithmetic() -> Shown:
    """The cost of broadcasts by arithmetic: sections 3.2, 5.1, 5.2 and 6."""
    nodes, torus = 512, (8, 8, 8)
    hops = overhead.mean_hops(torus, wraps=True)
    rows = {
        "hops of an average flow, 8 x 8 x 8 torus": (6, hops),
        "a broadcast, 512 nodes (KB)": (8, overhead.broadcast_bytes(nodes) / 1e3),
        "a flow between each pair, per link (KB)": (681, overhead.all_pairs_bytes(torus) / 1e3),
        "start and finish of a flow of 10 KB (%)": (26.66, 100 * overhead.relative(10_000, nodes, hops)),
        "of 10 MB (%)": (0.026, 100 * overhead.relative(10_000_000, nodes, hops)),
        "5% of the bytes in flows of 10 KB (%)": (1.3, 100 * overhead.relative_of_mix(0.05, nodes, hops)),
        "a broadcast, two-level Clos of 32 ports (KB)": (8.7, overhead.clos_broadcast_bytes(nodes, 32) / 1e3),
    }
    table = pd.DataFrame(rows, index=["paper", "ours"]).T
    rows_held = [("all", str(what), float(of["ours"]), float(of["paper"])) for what, of in table.iterrows()]
    return Shown(table, held=[held(rows_held, within=WITHIN_ARITHMETIC)])


def figure_7() -> Shown:
    """The simulator's half of the cross-validation: 1,000 flows of 10 MB on a 4 x 4 torus with links of 5 Gbps."""
    ran = rack.run("maze", "R2C2", {"traffic.0.flows": round(1000 * rack.scale)})
    result = Runs([ran])
    table = pd.DataFrame(
        {"Gbps": result.flows["gbps"].describe(), "queue KB": pd.Series(result.queues / 1e3).describe()}
    ).drop(index="count")
    panels = [
        cdf("Flows", {"R2C2": result.flows["gbps"].dropna()}, "average throughput (Gbps)"),
        cdf("Queues between nodes", {"R2C2": pd.Series(result.queues / 1e3)}, "longest over the run (KB)"),
    ]
    # All flows are as long: on average a byte takes as many links between nodes as a flow has hops.
    sent = ran.links.to_pandas().groupby("tier", observed=True)["sent_bytes"].sum().astype(float)
    between = float(sent.get("up", 0.0) + sent.get("down", 0.0)) / float(sent["from_host"])
    ends = ran.flows.to_pandas()[["src", "dst"]].astype(int)
    hops = float(np.mean([overhead.hops_between((4, 4), *pair) for pair in ends.itertuples(index=False)]))
    rows = [("all", "links between nodes that a byte takes", between, hops)]
    note = (
        "The paper prints distributions and no number: the emulator's beside the simulator's. `maze figure-7` is that "
        "comparison, live beside simulated, with distances that are bounded; this is the simulator's half."
    )
    held_ = [held(rows, within=0.01, kind="closed form")]
    return Shown(table, {"all flows complete": result.unfinished == 0}, draw(panels), held_, note)


def part(table: pd.DataFrame, names: str | tuple[str, ...]) -> pd.DataFrame:
    """The rows of a table whose first names are these."""
    where: Any = names
    return pd.DataFrame(table.loc[where])


def figure_9() -> Shown:
    """Bytes of broadcasts relative to the flows' bytes on links, by the share of bytes that small flows carry: by
    arithmetic, and measured."""
    shares = (0.05, 0.25, 0.5, 0.75, 1.0)
    table = pd.DataFrame(index=pd.Index(shares, name="bytes in small flows"))
    for name, (kind, dims) in FABRICS.items():
        hops = overhead.mean_hops(dims, wraps=kind == "torus")
        table[name] = [100 * overhead.relative_of_mix(share, 512, hops) for share in shares]
        table[f"{name}, measured"] = [100 * broadcast_share(name, kind, dims, share) for share in shares]
    measured = [
        (
            name,
            f"broadcasts' share of flows' bytes, {share:.0%} in small flows (%)",
            cell(table, share, f"{name}, measured"),
            cell(table, share, name),
        )
        for name in FABRICS
        for share in shares
    ]
    papers = [("3D torus", "broadcasts' share, 5% in small flows (%)", cell(table, 0.05, "3D torus, measured"), 1.3)]
    checks = {
        "less where flows take more hops": bool(
            (table["3D torus"] > table["3D mesh"]).all() and (table["3D mesh"] > table["2D torus"]).all()
        ),
    }
    panel = lines("512 nodes", table, "share of bytes in small flows", "broadcasts (% of flows' bytes)")
    against = [held(papers, within=WITHIN_ARITHMETIC), held(measured, within=0.01, kind="closed form")]
    return Shown(table, checks, draw([panel]), against)


def broadcast_share(name: str, kind: str, dims: tuple[int, ...], share: float) -> float:
    """The broadcasts that links carried, over the flows' bytes times the hops of an average flow: with few long flows
    chance decides the hops."""
    long_flows = 0 if share == 1 else max(round(2 * rack.scale), 1)
    small_bytes = 70e6 * rack.scale if share == 1 else long_flows * overhead.LONG_BYTES * share / (1 - share)
    classes = {
        "small": (overhead.SMALL_BYTES, "1us", round(small_bytes / overhead.SMALL_BYTES)),
        "long": (overhead.LONG_BYTES, "200us", long_flows),
    }
    traffic = [
        {"name": of, "sizes": {"constant": f"{size}B"}, "arrivals": {"poisson": {"every": every}}, "flows": flows}
        for of, (size, every, flows) in classes.items()
        if flows
    ]
    result = rack.run("broadcast", f"{name} {share:g}", {"fabric": {kind: {"dims": list(dims)}}, "traffic": traffic})
    hops = overhead.mean_hops(dims, wraps=kind == "torus")
    return rack.control_bytes(result) / (float(rack.flows_of(result)["bytes"].sum()) * hops)


def numbers(every: str = "1us") -> pd.DataFrame:
    """The results of TCP, PFQ and both readings of R2C2."""
    return table_of({scheme: runs(scheme, every).row() for scheme in SCHEMES}, "scheme")


def both(say: Callable[[str], tuple[str, bool]]) -> dict[str, bool]:
    """A check for each reading."""
    return {f"{scheme}: {text}": holds for scheme in READINGS for text, holds in [say(scheme)]}


def figure_10() -> Shown:
    """Completion times of short flows (less than 100 KB), with one new flow every 1 us."""
    table = numbers()
    p99, p50 = table["short p99 us"], table["short p50 us"]

    def papers(scheme: str) -> Rows:
        return [("below 100 KB", "TCP's p99 FCT over ours, 1 us", p99["TCP"] / p99[scheme], 3.21)]

    def like_pfq(scheme: str) -> tuple[str, bool]:
        times = p99[scheme] / p99["PFQ"], p50[scheme] / p50["PFQ"]
        text = (
            f"p99 and median are {times[0]:.2f} and {times[1]:.2f} times PFQ's, within a tenth (paper: closely matches)"
        )
        return text, all(near(each, 1, 0.1) for each in times)

    checks = {**both(like_pfq), "all flows complete": bool((table["unfinished"] == 0).all())}
    panel = cdf(
        "Short flows, one every 1 us", {scheme: runs(scheme).short_us for scheme in SCHEMES}, "FCT (us)", log_x=True
    )
    return Shown(table, checks, draw([panel]), of_both(papers, WITHIN_TCP))


def figure_11() -> Shown:
    """Average throughput of long flows (more than 1 MB), with one new flow every 1 us."""
    table = numbers()
    mean, p99 = table["long mean Gbps"], table["long p99 Gbps"]

    def papers(scheme: str) -> Rows:
        return [("above 1 MB", "p99 throughput over TCP's, 1 us", p99[scheme] / p99["TCP"], 2.55)]

    def below_pfq(scheme: str) -> tuple[str, bool]:
        return f"PFQ's mean is {mean['PFQ'] / mean[scheme]:.2f} times as high (paper: higher)", bool(
            mean["PFQ"] > mean[scheme]
        )

    panel = cdf(
        "Long flows, one every 1 us",
        {scheme: runs(scheme).long_gbps for scheme in SCHEMES},
        "average throughput (Gbps)",
    )
    return Shown(table, both(below_pfq), draw([panel]), of_both(papers, WITHIN_TCP))


def over_intervals(column: str) -> pd.DataFrame:
    """A number of each scheme by the time between arrivals."""
    return table_of({every: numbers(every)[column] for every in INTERVALS}, "every")


def figure_12() -> Shown:
    """99th percentile of short flows' completion times, normalised against TCP's, by inter-arrival time."""
    table = over_intervals("short p99 us")
    normal = table.div(table["TCP"], axis=0)

    def below_tcp(scheme: str) -> tuple[str, bool]:
        return "below TCP at every load", bool((normal[scheme] < 1).all())

    def to_pfq(scheme: str) -> tuple[str, bool]:
        times = normal[scheme] / normal["PFQ"]
        each = ", ".join(f"{one:.2f}" for one in times)
        text = f"{each} times PFQ's at {', '.join(INTERVALS)} (paper: converges to it)"
        return text, bool(times["100ns"] > times["1us"] and near(times["100us"], 1, 0.1))

    panel = bars("Short flows, p99", normal[["PFQ", *READINGS]], "a flow every", "FCT / TCP's")
    note = "The paper prints bars and no number: R2C2 is below TCP and converges to PFQ, within a tenth at 100 us."
    return Shown(table.join(normal.add_suffix(" / TCP")), {**both(below_tcp), **both(to_pfq)}, draw([panel]), note=note)


def figure_13() -> Shown:
    """Average throughput of long flows, normalised against TCP's, by inter-arrival time."""
    table = over_intervals("long mean Gbps")
    normal = table.div(table["TCP"], axis=0)

    def between(scheme: str) -> tuple[str, bool]:
        holds = (normal[scheme] > 1) & (normal[scheme] < normal["PFQ"])
        return f"between TCP and PFQ at {', '.join(str(every) for every in holds.index[holds]) or 'no load'}", bool(
            holds.all()
        )

    panel = bars("Long flows, mean", normal[["PFQ", *READINGS]], "a flow every", "throughput / TCP's")
    note = "The paper prints bars and no number: R2C2 lies between TCP and PFQ."
    return Shown(table.join(normal.add_suffix(" / TCP")), both(between), draw([panel]), note=note)


def figure_14() -> Shown:
    """Maximum length of each queue between nodes under R2C2: median and 99th percentile, by inter-arrival time."""
    columns = ["queue p50 KB", "queue p99 KB", "queue max KB", "at once"]
    table = table_of(
        {(scheme, every): runs(scheme, every).row()[columns] for scheme in READINGS for every in INTERVALS},
        ["scheme", "every"],
    )

    def papers(scheme: str) -> Rows:
        at = table.loc[scheme]
        # "For inter-arrival times of 1 us and above, the 99th percentile is lower than 27 KB": the most of these, which
        # is that at 1 us.
        longest = at["queue p99 KB"][["1us", "10us", "100us"]].max()
        return [
            ("queues between nodes", "p99 of the longest, 1 us and above (KB)", longest, 27),
            ("queues between nodes", "p99 of the longest, 100 ns (KB)", at.loc["100ns", "queue p99 KB"], 330.6),
            ("queues between nodes", "median of the longest, 100 ns (KB)", at.loc["100ns", "queue p50 KB"], 3.8),
            ("all", "most flows at once, 100 ns", at.loc["100ns", "at once"], 2_241),
        ]

    def median(scheme: str) -> tuple[str, bool]:
        p50 = part(table, scheme)["queue p50 KB"][["1us", "10us", "100us"]]
        text = f"median there is {', '.join(f'{each:.1f}' for each in p50)} KB (paper: less than a packet)"
        return text, bool((p50 < rack.PACKET_BYTES / 1e3).all())

    panels = [
        bars(scheme, part(table, scheme)[columns[:2]], "a flow every", "longest queue (KB)", log_y=True)
        for scheme in READINGS
    ]
    return Shown(table, both(median), draw(panels, sharey=True), of_both(papers))


# Whose re-order buffers section 5.2 tells of: it says "the re-order buffer size" and no more.
BUFFERS = ("a flow's", "a flow's from 100 KB", "a node's")


def reordering() -> Shown:
    """Packets in re-order buffers with one new flow every 1 us (section 5.2), for each reading of whose buffer the
    paper means."""
    packets = {(scheme, whose): of for scheme in READINGS for whose, of in reordered(scheme).items()}
    columns = pd.MultiIndex.from_tuples(packets, names=["scheme", "whose"])
    table = pd.DataFrame(
        {key: of.quantile([0.5, 0.95, 0.99, 1.0]) for key, of in packets.items()}, columns=columns
    ).rename_axis("quantile")

    def papers(scheme: str) -> Rows:
        rows = [
            (whose, "packets in re-order buffers, p95", cell(table, 0.95, (scheme, whose)), 30) for whose in BUFFERS
        ]
        # The most is the same whosever they are.
        return [*rows, ("all", "packets in re-order buffers, most", cell(table, 1.0, (scheme, BUFFERS[0])), 51)]

    return Shown(table, held=of_both(papers))


def reordered(scheme: str) -> dict[str, pd.Series[float]]:
    """The most packets that waited for an earlier one: of each flow, of each that is not short, and of the worst of
    all flows to a node."""
    columns = ["flow", "dst", "bytes"]
    runs_of = [
        result.flows.to_pandas()[columns].set_index("flow").join(rack.measures(result)["reordered_max_packets"])
        for result in runs(scheme).results
    ]
    flows = pd.concat(runs_of, keys=range(len(runs_of)), names=["run"]).reset_index()
    most = flows["reordered_max_packets"]
    return {
        "a flow's": most,
        "a flow's from 100 KB": most[flows["bytes"] >= rack.SHORT_BYTES],
        "a node's": flows.groupby(["run", "dst"])["reordered_max_packets"].max(),
    }


def length() -> Shown:
    """Effect of a run's length on queues and re-order buffers, with one new flow every 1 us."""
    rows = {}
    for scheme in READINGS:
        for flows in (500, 1_000, 2_000, 5_000, 10_000, 20_000):
            keys, number = SCHEMES[scheme], max(round(flows * rack.scale), 1)
            of = Runs(rack.rack(f"{scheme} {number} flows", keys, "1us", seed, number) for seed in rack.SEEDS)
            packets = pd.concat([rack.measures(result)["reordered_max_packets"] for result in of.results])
            reordered = pd.Series({"re-order p95": packets.quantile(0.95), "re-order max": packets.max()})
            rows[scheme, flows] = pd.concat(
                [of.row()[["queue p50 KB", "queue p99 KB", "queue max KB", "short p99 us"]], reordered]
            )
    table = table_of(rows, ["scheme", "flows"])

    def longer(scheme: str) -> tuple[str, bool]:
        p99 = part(table, scheme)["queue p99 KB"]
        return (
            f"queues' p99 grows with the run, from {p99.iloc[0]:.0f} to {p99.iloc[-1]:.0f} KB (paper: below 27)",
            bool(p99.is_monotonic_increasing),
        )

    panels = [
        lines(scheme, part(table, scheme)[["queue p50 KB", "queue p99 KB"]], "flows", "longest queue (KB)")
        for scheme in READINGS
    ]
    return Shown(table, both(longer), draw(panels, sharey=True))


def rate_errors(scheme: str, every: str, rho: str) -> pd.Series[float]:
    """By how much the mean rates of flows are off what they are if rates are computed at every event, to that: in
    percent, of all flows and of those that are not short, which are most of the bytes. One seed has flows enough."""
    ours, ideal = (
        rack.rack(f"{scheme} rho {each}", rack.keys_of(scheme, recompute=each), every, rack.SEEDS[0])
        for each in (rho, IDEAL.get(every, "0s"))
    )
    rates, ideal_rates = (rack.measures(result)["rate_mean_bps"] for result in (ours, ideal))
    off = (100 * (rates - ideal_rates).abs() / ideal_rates).dropna()
    longer = off[rack.flows_of(ours)["bytes"].reindex(off.index) >= rack.SHORT_BYTES]
    populations = {"": off, ", from 100 KB": longer}
    quantiles = {"median": 0.5, "p95": 0.95}
    return pd.Series(
        {f"{name} %{which}": of.quantile(at) for which, of in populations.items() for name, at in quantiles.items()}
    )


def error_panels(table: pd.DataFrame, x: str) -> list[Any]:
    """A panel a reading: rates off those computed at every event."""
    return [
        lines(f"{scheme}: to rates computed at every event", part(table, scheme), x, "rate error (%)")
        for scheme in READINGS
    ]


def figure_15() -> Shown:
    """Difference between rates and those recomputed at every event, by the recomputation interval; one new flow every 1
    us."""
    table = table_of(
        {(scheme, rho): rate_errors(scheme, "1us", rho) for scheme in READINGS for rho in RHOS}, ["scheme", "rho"]
    )

    def papers(scheme: str) -> Rows:
        return [
            (bucket, f"rates off the ideal, {name}, 500 us (%)", cell(table, (scheme, RHO), f"{name} %{which}"), paper)
            for bucket, which in (("all", ""), ("from 100 KB", ", from 100 KB"))
            for name, paper in (("median", 8.2), ("p95", 37.9))
        ]

    def nearer(scheme: str) -> tuple[str, bool]:
        return "shorter intervals are nearer", bool(part(table, scheme)["p95 %"].is_monotonic_increasing)

    return Shown(table, both(nearer), draw(error_panels(table, "recomputation interval"), sharey=True), of_both(papers))


def figure_16() -> Shown:
    """Difference between rates recomputed every 500 us and those recomputed at every event, by inter-arrival time."""
    table = table_of(
        {(scheme, every): rate_errors(scheme, every, RHO) for scheme in READINGS for every in INTERVALS},
        ["scheme", "every"],
    )

    def idle(scheme: str) -> tuple[str, bool]:
        median, p95 = (cell(table, (scheme, "100us"), column) for column in ("median %", "p95 %"))
        return f"{median:.2f}% in the median at 100 us, {p95:.1f}% at p95 (paper: almost negligible)", p95 < 5

    def more(scheme: str) -> tuple[str, bool]:
        return "more where more flows arrive", bool(part(table, scheme)["p95 %"].is_monotonic_decreasing)

    note = 'The paper prints no number: "almost negligible" is 5% at most.'
    picture = draw(error_panels(table, "a flow every"), sharey=True)
    return Shown(table, {**both(idle), **both(more)}, picture, note=note)


def figure_17() -> Shown:
    """99th percentile of short flows' completion times and throughput of long flows, by headroom; one new flow every 1
    us."""
    columns = ["short p99 us", "long mean Gbps", "queue p99 KB"]
    rows = {
        (scheme, 100 * headroom): runs(scheme, headroom=headroom).row()[columns]
        for scheme in READINGS
        for headroom in HEADROOMS
    }
    table = table_of(rows, ["scheme", "headroom %"])

    def off(scheme: str, column: str) -> float:
        return 100 * (1 - cell(table, (scheme, 5.0), column) / cell(table, (scheme, 0.0), column))

    def papers(scheme: str) -> Rows:
        return [("below 100 KB", "5% of headroom takes off the p99 FCT (%)", off(scheme, columns[0]), 21.9)]

    def little(scheme: str) -> tuple[str, bool]:
        lost = off(scheme, columns[1])
        return f"5% of headroom takes {lost:.1f}% off long throughput (paper: less than 3)", bool(0 < lost < 3)

    panels = [
        lines(title, table[column].unstack("scheme")[list(READINGS)], "headroom (%)", y)
        for title, column, y in (
            ("Short flows", columns[0], "p99 FCT (us)"),
            ("Long flows", columns[1], "mean throughput (Gbps)"),
        )
    ]
    return Shown(table, both(little), draw(panels), of_both(papers))


def figure_19() -> Shown:
    """Control traffic for the start or finish of a flow, centralised and decentralised, by the number of long flows of
    a node: by arithmetic, and measured."""
    hops = overhead.mean_hops((8, 8, 8), wraps=True)
    rows = {}
    for long_flows in (1, 2, 5, 10):
        computed = {
            "decentralised KB": overhead.broadcast_bytes(512) / 1e3,
            "centralised KB": overhead.centralised_bytes(long_flows, 512, hops) / 1e3,
        }
        measured = {
            f"{name} KB, measured": rack.control_bytes_of_event(long_flows, name) / 1e3
            for name in ("decentralised", "centralised")
        }
        rows[long_flows] = pd.Series({**computed, **measured})
    table = table_of(rows, "long flows a node")
    table["times"] = table["centralised KB"] / table["decentralised KB"]
    table["times, measured"] = table["centralised KB, measured"] / table["decentralised KB, measured"]
    times = table["times, measured"]
    papers: Rows = [
        (f"{flows} long flows a node", "control traffic, centralised over decentralised", times[flows], paper)
        for flows, paper in ((1, 6.2), (10, 19.9))
    ]
    measured_columns = ["decentralised KB, measured", "centralised KB, measured"]
    panel = lines("512 nodes", table[measured_columns], "long flows a node", "control traffic of an event (KB)")
    return Shown(table, picture=draw([panel]), held=[held(papers, within=WITHIN_ARITHMETIC)])


def clos() -> Shown:
    """R2C2 on a two-level folded Clos of 32-port switches with 512 hosts (section 6): bytes on links for each
    broadcast."""
    flows = round(200 * max(rack.scale, 0.1))
    result = rack.run("clos", f"{flows}", {"traffic.0.flows": flows})
    table, links = result.flows.to_pandas(), result.links.to_pandas()
    # Each flow is one packet and its answer, over its hosts' links and, between racks, two more.
    far = (table["src"] // 16 != table["dst"] // 16).sum()
    unicast = (1_000 + 35 + 40) * (2 * len(table) + 2 * far)
    measured = (links["sent_bytes"].sum() - unicast) / rack.events(result)
    rows = {"bytes on links": measured, "by arithmetic": overhead.clos_broadcast_bytes(512, 32), "paper": 8_700}
    by = "bytes of a broadcast, 512 hosts under a Clos of 32-port switches"
    against = [
        held([("all", by, measured, rows["paper"])], within=WITHIN_ARITHMETIC),
        held([("all", by, measured, rows["by arithmetic"])], within=0, kind="closed form"),
    ]
    return Shown(pd.DataFrame({"a broadcast": rows}), held=against)


BUFFERS_KB = (22.5, 37.5, 75, 150, 300, 500, 1_000, 2_000, 100_000)


def tcp() -> Shown:
    """TCP with different buffers, minimum timeouts and congestion controls, beside R2C2; one new flow every 1 us."""
    grid = [("newreno", buffer, "1ms") for buffer in BUFFERS_KB]
    grid += [("newreno", 150, rto) for rto in ("200us", "10ms")] + [("cubic", buffer, "1ms") for buffer in BUFFERS_KB]
    rows = {}
    for control, buffer, rto in grid:
        keys = {
            **SCHEMES["TCP"],
            "transport": {control: {"rto_min": rto}},
            "switch.buffer": {"per_port": {"bytes": f"{buffer:g}KB"}},
        }
        name = f"{control} {buffer:g}KB {rto}"
        rows[control, rto, buffer] = Runs(rack.rack(name, keys, "1us", seed) for seed in rack.SEEDS).row()
    table = table_of(rows, ["control", "least timeout", "buffer KB"])
    table = table[["short p50 us", "short p99 us", "long mean Gbps", "long p99 Gbps", "lost"]].copy()
    for scheme in READINGS:
        ours = runs(scheme).row()
        table[f"short p99 / {scheme}'s"] = table["short p99 us"] / ours["short p99 us"]
        table[f"{scheme}'s / long p99"] = ours["long p99 Gbps"] / table["long p99 Gbps"]
    curves = {control: part(table.sort_index(), (control, "1ms")) for control in ("newreno", "cubic")}

    def papers(scheme: str) -> Rows:
        at = {column: cell(table, ("newreno", "1ms", 150), column) for column in table.columns}
        return [
            ("below 100 KB", "TCP's p99 FCT over ours, 150 KB a port", at[f"short p99 / {scheme}'s"], 3.21),
            ("above 1 MB", "p99 throughput over TCP's, 150 KB a port", at[f"{scheme}'s / long p99"], 2.55),
        ]

    panels = [
        lines(
            f"Short flows, {control}",
            of[[f"short p99 / {scheme}'s" for scheme in READINGS]].set_axis([f"{buffer:g}" for buffer in of.index]),
            "TCP's buffer (KB a port)",
            "TCP's p99 / R2C2's",
        )
        for control, of in curves.items()
    ]
    return Shown(table, {}, draw(panels, sharey=True), of_both(papers, WITHIN_TCP))


def pfq() -> Shown:
    """PFQ with different limits on the bytes of a flow that a queue may hold; one new flow every 1 us."""
    rows = {}
    for margin in ("3KB", "15KB", "60KB", "1MB"):
        keys = {**SCHEMES["PFQ"], "flow_control": {"per_flow_queues": {"margin": margin}}}
        rows[margin] = Runs(rack.rack(f"PFQ {margin}", keys, "1us", seed) for seed in rack.SEEDS).row()
    table = table_of(rows, "margin")
    more = cell(table, "1MB", "long mean Gbps") / cell(table, "60KB", "long mean Gbps")
    return Shown(table, {f"more than 60 KB gives long flows {100 * (more - 1):.1f}% more": more < 1.01})


def cost() -> Shown:
    """Run time and memory of the rack's runs."""
    table = table_of(
        {(scheme, every): runs(scheme, every).cost() for scheme in SCHEMES for every in INTERVALS}, ["scheme", "every"]
    )
    return Shown(
        table, {f"each takes minutes at most: {table['seconds'].max():.0f} s": bool(table["seconds"].max() < 300)}
    )
