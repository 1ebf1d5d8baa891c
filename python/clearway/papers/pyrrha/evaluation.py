"""The figures and tables of Pyrrha's paper (NSDI 2025), the paper's numbers beside ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import clearway as cw
from clearway.papers import figures
from clearway.papers.figures import Held, Shown, cell, draw, part, row

from . import scenes
from .held import COLUMNS, RANGE, WITHIN_DRAW, against_paper, beside_authors, gain, in_range
from .scenes import CLASSES, bars, buffers, by_size, class_bars, fct, keys, lines, longest, mix, queueing, run, table_of

UNCONGESTED = ("vulnerable", "background")

# Pyrrha as the authors' published program does it.
PUBLISHED = {"flow_control": {"pyrrha": {"departures": "published"}}}

FLOW_CONTROL = ("PFC", "BFC-32", "BFC-128", "Pyrrha")

# BFC by its paper, and in brackets as Pyrrha's authors run it.
BFC = ("BFC-32", "BFC-128", "BFC-32 (published)", "BFC-128 (published)")

DCQCN = ("DCQCN + PFC", "DCQCN + IRN", "Pyrrha", "DCQCN + Pyrrha")


def rates(result: cw.Result) -> pd.DataFrame:
    """Each entity's goodput in Gbps, by ms."""
    gbps = result.entity_rates() / 1e9
    return gbps.set_axis(gbps.index * 1e3)


def figure_2() -> Shown:
    """Goodput over time of incast, vulnerable and background flows under PFC, per-flow queues, BFC and Pyrrha."""
    runs = {name: mix("Web Server", name) for name in ("PFC", "per-flow", "BFC-32", "BFC-32 (published)", "Pyrrha")}
    over_time = {name: rates(result) for name, result in runs.items()}
    # While Poisson flows arrive and the incast lasts, but for the first 100 us.
    table = pd.DataFrame(
        {name: rate[(rate.index > 0.1) & (rate.index < 2 * scenes.scale)].mean() for name, rate in over_time.items()}
    ).T
    pfc, separate = row(table, "PFC"), row(table, "per-flow")
    checks = {
        "PFC: vulnerable flows get less than half of what they get with per-flow queues": bool(
            pfc["vulnerable"] < 0.5 * separate["vulnerable"]
        ),
        "PFC: background flows lose goodput": bool(pfc["background"] < 0.9 * separate["background"]),
        **{
            f"{bfc}: vulnerable flows get less than with per-flow queues": bool(
                cell(table, bfc, "vulnerable") < 0.9 * separate["vulnerable"]
            )
            for bfc in ("BFC-32", "BFC-32 (published)")
        },
        "Pyrrha: vulnerable and background flows get what per-flow queues give, within 10%": bool(
            (row(table, "Pyrrha") / separate)[list(UNCONGESTED)].between(0.9, 1.1).all()
        ),
        "the incast loses nothing: within 5% of each other": bool(table["incast"].max() < 1.05 * table["incast"].min()),
    }
    order = ["incast", "vulnerable", "background"]
    panels = [lines(name, rate.clip(lower=1)[order].loc[:4], "ms", "Gbps") for name, rate in over_time.items()]
    # 1,460 of 1,536 bytes of a packet are payload.
    rows = [(name, "Gbps of the incast", cell(table, name, "incast"), 100 * 1460 / 1536, 0.05) for name in table.index]
    full = Held("rdma over pyrrha", "a full link to the receiver", "closed form", pd.DataFrame(rows, columns=COLUMNS))
    # "The tail latency of flows is prolonged by 6 times compared with the per-flow queue scheme" (section 2.3).
    tail = {name: float(uncongested_us(result).quantile(0.99)) for name, result in runs.items()}
    prolonged = [
        ("vulnerable and background", f"p99 FCT under {bfc} over that with per-flow queues, times", times, 6.0, 0.5 / 6)
        for bfc in ("BFC-32", "BFC-32 (published)")
        for times in [tail[bfc] / tail["per-flow"]]
    ]
    note = (
        "The paper prints one number, of BFC's tail. The incast is held against its receiver's link, uncongested flows "
        "under Pyrrha against those with a queue for each flow, from both sides; what PFC and BFC lose has a bound of "
        "ours."
    )
    held = [full, against_paper("rdma over bfc", "section 2.3", prolonged)]
    return Shown(table, checks, draw(panels, 2, sharey=True), held, note)


def uncongested_us(result: cw.Result) -> pd.Series[float]:
    """Completion times of vulnerable and background flows, in us."""
    times = pd.Series(result.flows["fct_ps"].astype(float) / 1e6)
    return times[scenes.classes(result).isin(UNCONGESTED)]


MOE_SEEDS = (1, 2, 3)

MOE_STARTS = ("0s", "300us", "500us", "1ms", "2ms")


def moe(name: str, start: str) -> Shown:
    """The authors' two groups, the second of which starts this much later; marks from 50 to 200 KB in both (section
    6.2.1)."""
    results = {
        (pair, seed): run(
            "moe", f"{name} {pair} {seed}", {**keys(pair, control={}), "traffic.1.start": start, "seed": seed}
        )
        for pair in ("DCQCN + PFC", "DCQCN + Pyrrha")
        for seed in MOE_SEEDS
    }
    groups = ("all-to-all 1", "all-to-all 2")
    tables = {}
    for seed in MOE_SEEDS:
        of_seed = {pair: result for (pair, number), result in results.items() if number == seed}
        tables[seed] = table_of(of_seed, groups)
        for pair, result in of_seed.items():
            times = pd.Series(result.flows["fct_ps"].astype(float) / 1e6)
            tables[seed].loc[pair, "all mean"], tables[seed].loc[pair, "all p99"] = times.mean(), times.quantile(0.99)
    table = pd.concat(tables, names=["seed"]).groupby(level=1).mean()
    panels: list[Any] = [
        lines(pair, rates(results[pair, 1]).loc[:12], "ms", "Gbps", log_y=False)
        for pair in ("DCQCN + PFC", "DCQCN + Pyrrha")
    ]
    return Shown(table, {}, draw([*panels, class_bars("FCT", table, (*groups, "all"))]))


def figure_3() -> Shown:
    """MoE: the authors' two groups of all-to-all with colliding phases: completion times in us over three seeds, by the
    start of group 2."""
    # The check is of 1 ms. The authors' configuration, which is not public, has another start, or the same: so others
    # are shown.
    by_start = {start: moe("collided" if start == "1ms" else f"{start} later", start) for start in MOE_STARTS}
    accelerated = gain(by_start["1ms"].table, "DCQCN + PFC", "DCQCN + Pyrrha", "all p99")
    rows = [("all", "p99 FCT over PFC, times less", accelerated, 1.46, 0.1)]
    table = pd.concat({start: shown.table for start, shown in by_start.items()})
    table["p99 times less"] = [
        cell(table, (start, "DCQCN + PFC"), "all p99") / p99
        for start, p99 in zip(table.index.get_level_values(0), table["all p99"])
    ]
    held = [against_paper("dcqcn over pyrrha", "figure 3", rows, seeds="1 to 3")]
    return Shown(table, {}, by_start["1ms"].picture, held)


def figure_21() -> Shown:
    """MoE: two groups of all-to-all with interleaved phases: completion times in us."""
    shown = moe("interleaved", "6ms")
    accelerated = gain(shown.table, "DCQCN + PFC", "DCQCN + Pyrrha", "all mean")
    said = f"Pyrrha's mean is lower, {accelerated:.2f} times, and by less than where phases collide (1.46, figure 3)"
    shown.checks = {said: 1 < accelerated < 1.46}
    shown.note = 'The paper prints no number: flows are "slightly affected", and Pyrrha still improves their latency.'
    return shown


def isolation_queues(result: cw.Result) -> pd.DataFrame:
    """Isolation queues that hold packets, a row a sample and port: by where their roots are (up, down, to_host), and
    in all."""
    links, seen = result.links.to_pandas(), result.congestion.to_pandas()
    seen = seen[seen["root_link"].notna() & (seen["role"] != "root") & (seen["bytes"] > 0)]
    tier = links["tier"].astype(str)
    seen = seen.assign(root=tier.loc[seen["root_link"].astype(int)].to_numpy(), at=tier.loc[seen["link"]].to_numpy())
    counts = seen.groupby(["time_ps", "link", "at", "root"]).size().unstack(fill_value=0)
    return counts.reindex(columns=list(scenes.TIERS.values()), fill_value=0).assign(all=counts.sum(axis=1))


def storm(parts: int, name: str, starts: list[int], sets: Any) -> cw.Result:
    """A storm of (parts - 1) / parts of the hosts upon the others, in the authors' pairs: neighbours send to one
    host."""
    receivers = 432 // parts
    pairs = [(sender, (sender - receivers) // (parts - 1)) for sender in range(receivers, 432)]
    flows = [(*pair, 90_000, start) for start in starts for pair in pairs]
    path = scenes.OUT / f"storm-{parts}-{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(flows, columns=["src", "dst", "size_bytes", "start_ns"]).to_csv(path, index=False)
    traffic = [{"name": "storm", "trace": {"csv": {"path": str(path.resolve())}}}]
    return run("storm", f"{parts} parts, {name}", {"traffic": traffic, "measure.interval": "50us", **sets})


def figure_7() -> Shown:
    """Isolation queues in use at a port of a fat-tree (k = 12) while a share of the racks sends to the others at once:
    the most, the mean over time, and the most by the tier of the congestion root."""
    number = round(40 * scenes.scale)
    # The text: 40 flows a host, one after the other. Its program: the first, and a round trip later all others
    # (`time_offset`).
    settings: dict[str, tuple[list[int], Any]] = {
        "paper": ([7_400 * index for index in range(number)], {}),
        "published": ([0] + [7_400] * (number - 1), PUBLISHED),
    }
    rows, over_time = {}, {}
    for setting, (starts, sets) in settings.items():
        for parts in (2, 3, 4, 6):
            result = storm(parts, setting, starts, sets)
            counts = isolation_queues(result)
            most = row(counts, counts["all"].idxmax())
            assigned = result.links.to_pandas().groupby("tier", observed=True)["own_queues_max"].max()
            at = counts.groupby(level="at")["all"].max()
            rows[setting, f"{parts - 1}/{parts}"] = {
                "up": at.get("up", 0),
                "down": at.get("down", 0),
                "mean": counts["all"].mean(),
                **{f"roots {tier}": most[tier] for tier in scenes.TIERS.values()},
                "assigned up": assigned["up"],
                "assigned down": assigned["down"],
            }
            if parts == 6:
                over_time[setting] = counts.groupby(level="time_ps")["all"].agg(["max", "mean"]).rename_axis("us")
    table = pd.DataFrame(rows).T.rename_axis(["setting", "senders"])
    held = []
    for setting in settings:
        most = part(table, setting)[["up", "down"]].max(axis=1)
        # 6 to 20: 13 and 54% of it either way.
        statistic = "isolation queues with packets at a port, at most"
        of_setting = [(f"{share} send", statistic, float(most[share]), 13.0, 0.54) for share in most.index]
        held.append(against_paper(f"pyrrha, {setting}", "figure 7 (6 to 20)", of_setting))
    panels = [
        lines(
            f"5/6 send, {setting}",
            frame.set_axis(frame.index / 1e6).loc[:2_500],
            "us",
            "isolation queues of a port",
            log_y=False,
        )
        for setting, frame in over_time.items()
    ]
    return Shown(table, {}, draw(panels, sharey=True), held)


def figure_9() -> Shown:
    """Testbed: completion times of vulnerable flows beside an incast of two senders."""
    results = {}
    for workload in ("Web Server", "Web Search"):
        for pair in ("PFC", "Pyrrha", "alone"):
            # Web Search has 27 times as large flows: long enough for a hundred.
            ms = (20 if workload == "Web Server" else 60) * scenes.scale
            vulnerable = {
                "traffic.2.sizes": scenes.WORKLOADS[workload],
                "traffic.2.arrivals": {"poisson": {"load": 0.4}},
                "traffic.2.start": "100us",
            }
            # Alone they have no incast beside them: it would begin after the end.
            incast = f"{ms + 20:g}ms" if pair == "alone" else "0s"
            sets = {
                **keys("Pyrrha" if pair == "alone" else pair, window="unlimited"),
                **vulnerable,
                "seed": 5,
                "traffic.0.start": incast,
                "traffic.1.start": incast,
                "traffic.2.duration": f"{ms:g}ms",
                "measure.end": f"{ms + 10:g}ms",
                "traffic.0.sizes.constant": "10GB",
                "traffic.1.sizes.constant": "10GB",
            }
            results[f"{workload}, {pair}"] = run("testbed", f"figure 9 {workload} {pair}", sets)
    table = pd.DataFrame({name: fct(result).loc["VS"] for name, result in results.items()}).T
    checks: dict[str, bool] = {}
    rows: list[Any] = []
    for workload in ("Web Server", "Web Search"):
        for column in ("mean", "p99"):
            times = gain(table, f"{workload}, PFC", f"{workload}, Pyrrha", column)
            checks[f"{workload}: Pyrrha's {column} is lower, {times:.1f} times"] = times > 1
            # An isolated incast has half of the core's link for one of its two senders, and leaves the other half.
            alone = gain(table, f"{workload}, Pyrrha", f"{workload}, alone", column)
            rows.append((workload, f"{column} FCT over that without the incast, times", alone, 1.5, 1 / 3))
    columns = {
        pair: table.loc[[f"{workload}, {pair}" for workload in ("Web Server", "Web Search")]].set_axis(
            ["Web Server", "Web Search"]
        )
        for pair in ("PFC", "Pyrrha")
    }
    means, tails = (
        pd.DataFrame({pair: frame[column] for pair, frame in columns.items()}) for column in ("mean", "p99")
    )
    half = Held("rdma over pyrrha", "a link, and half of it", "closed form", pd.DataFrame(rows, columns=COLUMNS))
    note = (
        "The paper prints no number. Flows that share a core's link with an isolated sender of half its rate take once "
        "to twice as long as without the incast."
    )
    return Shown(table, checks, draw([bars("Vulnerable flows", means, tails)]), [half], note)


def testbed(order: tuple[str, str, str], figure: str, seed: int) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """Goodput on the testbed when the three flows start in this order, and in the end. The seed has VS share a port
    with S2 alone."""
    starts = {f"traffic.{('S1', 'S2', 'VS').index(name)}.start": at for name, at in zip(order, ("1ms", "4ms", "7ms"))}
    over_time = {
        pair: rates(run("testbed", f"{figure} {pair}", {**keys(pair, window="unlimited"), **starts, "seed": seed}))
        for pair in ("Pyrrha", "PFC")
    }
    # On the wire, as the paper's Gbps are.
    end = pd.DataFrame({pair: rate[rate.index > 10].mean() * 1536 / 1460 for pair, rate in over_time.items()}).T
    end["incast"] = end["S1 to R1"] + end["S2 to R1"]
    end["all"] = end["incast"] + end["VS to VR"]
    return over_time, end


def figure_10() -> Shown:
    """Testbed: goodput when S1, S2 and VS start one after the other, and rates in Gbps on the wire while all three
    send."""
    over_time, table = testbed(("S1", "S2", "VS"), "figure 10", 5)
    more = cell(table, "Pyrrha", "all") - cell(table, "PFC", "all")
    rows = [
        ("VS", "Gbps on the wire", cell(table, "Pyrrha", "VS to VR"), 66.7, 0.05),
        ("incast", "Gbps on the wire", cell(table, "Pyrrha", "incast"), 100.0, 0.05),
        ("all", "Gbps more than PFC", more, 26.7, 0.1),
    ]
    # Under PFC the core serves VS and S2 as they come, and S2 gets half of R1's link: both get 50 Gbps, so that all get
    # 150 of 166.7.
    closed = [("all", "Gbps more than PFC", more, 100 / 6, 0.1)]
    held = [
        against_paper("pyrrha", "figure 10", rows),
        Held("pyrrha", "shares by arithmetic", "closed form", pd.DataFrame(closed, columns=list(Held.COLUMNS))),
    ]
    panels = [lines(pair, rate, "ms", "Gbps", log_y=False) for pair, rate in over_time.items()]
    return Shown(table, {}, draw(panels, sharey=True), held)


def figure_24() -> Shown:
    """Testbed: goodput when S2, VS and S1 start in this order, so that the congestion root moves from the core to the
    destination's ToR."""
    over_time, table = testbed(("S2", "VS", "S1"), "figure 24", 2)
    rows = [
        ("VS", "Gbps on the wire", cell(table, "Pyrrha", "VS to VR"), 66.7, 0.05),
        ("incast", "Gbps on the wire", cell(table, "Pyrrha", "incast"), 100.0, 0.05),
    ]
    checks = {"more in all than PFC": cell(table, "Pyrrha", "all") > cell(table, "PFC", "all")}
    picture = draw([lines(pair, rate, "ms", "Gbps", log_y=False) for pair, rate in over_time.items()], sharey=True)
    return Shown(table, checks, picture, [against_paper("pyrrha", "figure 24", rows)])


def compared(
    pairs: tuple[str, ...],
    bases: tuple[str, ...],
    ours: str,
    workloads: tuple[str, ...] = tuple(scenes.WORKLOADS),
    **transport: Any,
) -> Shown:
    """Pairs over workloads: uncongested flows of `ours` must be no slower than those of any base."""
    name = "" if not transport else " ".join(map(str, transport.values()))
    tables = {
        workload: table_of({pair: mix(workload, pair, name, **transport) for pair in pairs}) for workload in workloads
    }
    checks = {}
    for workload, table in tables.items():
        for base in bases:
            gains = {
                (group, column): gain(table, base, ours, f"{group} {column}")
                for group in UNCONGESTED
                for column in ("mean", "p99")
            }
            text = ", ".join(
                f"{group} mean {100 * (1 - 1 / gains[group, 'mean']):.1f}% less and p99 {gains[group, 'p99']:.1f} times"
                for group in UNCONGESTED
            )
            # Where there is nothing to gain nothing may be lost.
            checks[f"{workload}: {ours} against {base}: {text}"] = (
                min(gains.values()) > 0.95 and gains["vulnerable", "p99"] > 1
            )
    panels = [class_bars(workload, table) for workload, table in tables.items()]
    scheme = f"{ours.partition(' + ')[0].lower()} over pyrrha" if " + " in ours else "rdma over pyrrha"
    # The authors ran BFC as they published it.
    rows = [
        row
        for workload, table in tables.items()
        for base in bases
        if not base.startswith("BFC") or base.endswith("(published)")
        for row in in_range(table, base, ours, bucket=workload)
    ]
    table = pd.concat(tables)
    note = (
        "The paper prints no number for this figure. Vulnerable flows' gains are held against the range that section 1 "
        "gives for all comparisons, and completion times against runs of the authors' program, where there is one."
    )
    return Shown(table, checks, draw(panels), [against_paper(scheme, RANGE, rows), *beside_authors(table)], note)


def figure_11() -> Shown:
    """Completion times in us with flow control alone; BFC both as in its paper and as in the authors' program."""
    shown = compared(("PFC", *BFC, "Pyrrha"), ("PFC", *BFC), "Pyrrha")
    for workload in scenes.WORKLOADS:
        incast = shown.table.loc[workload]["incast mean"]
        shown.checks[f"{workload}: the incast's mean is PFC's, within 10%"] = (
            abs(incast["Pyrrha"] / incast["PFC"] - 1) < 0.1
        )
        for few, many in (BFC[:2], BFC[2:]):
            of_few, of_many = (cell(shown.table, (workload, bfc), "vulnerable p99") for bfc in (few, many))
            said = f"{workload}: {many}'s vulnerable 99th percentile is no higher than {few}'s"
            shown.checks[said] = of_many <= 1.05 * of_few
    pfc, ours = (shown.table.xs(name, level=1) for name in ("PFC", "Pyrrha"))
    less = 100 * (1 - (ours / pfc)[[f"{group} mean" for group in UNCONGESTED]])
    lower = (pfc / ours)[[f"{group} p99" for group in UNCONGESTED]]
    rows = [
        ("uncongested, the workload that gains most", "mean FCT falls against PFC, %", less.max().max(), 98.2, 0.01),
        (
            "uncongested, the workload that gains most",
            "p99 FCT is lower than PFC's, times",
            lower.max().max(),
            215,
            0.1,
        ),
    ]
    frame = pd.DataFrame(rows, columns=list(figures.Held.COLUMNS))
    held = figures.Held("rdma over pyrrha", "section 1 of the paper", "paper", frame)
    return Shown(shown.table, shown.checks, shown.picture, [held, *shown.held])


def figure_12() -> Shown:
    """Completion times in us with DCQCN."""
    return compared(DCQCN, ("DCQCN + PFC",), "DCQCN + Pyrrha")


def figure_13() -> Shown:
    """Completion times in us with HPCC."""
    return compared(("HPCC + PFC", "HPCC + Pyrrha"), ("HPCC + PFC",), "HPCC + Pyrrha", ("Memcached", "Web Server"))


def figure_25() -> Shown:
    """Completion times in us of Memcached with TIMELY."""
    shown = compared(
        ("TIMELY + PFC", "Pyrrha", "TIMELY + Pyrrha"), ("TIMELY + PFC",), "TIMELY + Pyrrha", ("Memcached",)
    )
    # "The performance improvement of TIMELY is similar to that for DCQCN" (appendix B).
    dcqcn = table_of({pair: mix("Memcached", pair) for pair in ("DCQCN + PFC", "DCQCN + Pyrrha")})
    timely = pd.DataFrame(shown.table.loc["Memcached"])
    rows = [
        (
            f"Memcached, {group}",
            f"{what} FCT falls by TIMELY's Pyrrha, of what it falls by DCQCN's, times",
            gain(timely, "TIMELY + PFC", "TIMELY + Pyrrha", f"{group} {what}"),
            gain(dcqcn, "DCQCN + PFC", "DCQCN + Pyrrha", f"{group} {what}"),
            WITHIN_DRAW,
        )
        for group in UNCONGESTED
        for what in ("mean", "p99")
    ]
    similar = against_paper("timely over pyrrha", "appendix B: the improvement is similar to DCQCN's", rows)
    return Shown(shown.table, shown.checks, shown.picture, [*shown.held, similar], shown.note)


def figure_14() -> Shown:
    """The most data that is queued at each hop at one time, in KB, with DCQCN; Pyrrha both as in the paper and as in
    the authors' program."""
    pairs = ("DCQCN + PFC", "Pyrrha", "DCQCN + Pyrrha")
    sampled = {"measure.interval": "10us"}
    tables = {}
    for workload in ("Memcached", "Web Server"):
        runs = {pair: mix(workload, pair, "10 us", sampled) for pair in pairs}
        runs |= {f"{pair}, published": mix(workload, pair, "published", sampled | PUBLISHED) for pair in pairs[1:]}
        tables[workload] = pd.DataFrame({name: buffers(result) for name, result in runs.items()})
    rows: dict[str, list[tuple[str, str, float, float, float]]] = {"": [], ", published": []}
    checks = {}
    for workload, table in tables.items():
        total = table.sum()
        for setting, of_setting in rows.items():
            times = float(total["DCQCN + PFC"] / total[f"DCQCN + Pyrrha{setting}"])
            # The paper's 1.8 to 6.2: 4 and 55% of it either way.
            of_setting.append((workload, "what waits in all over PFC, times less", times, 4.0, 0.55))
            pfc, alone, both = (table[name] for name in ("DCQCN + PFC", f"Pyrrha{setting}", f"DCQCN + Pyrrha{setting}"))
            checks[f"{workload}{setting}: less at the destination's ToR"] = bool(both["DstToR"] < pfc["DstToR"])
            checks[f"{workload}{setting}: more at the source's ToR"] = bool(alone["SrcToR"] > pfc["SrcToR"])
    panels = [bars(workload, table, y="waits at once (KB)") for workload, table in tables.items()]
    held = [
        against_paper(f"dcqcn over pyrrha{setting}", "figure 14 (1.8 to 6.2 times less)", of_setting)
        for setting, of_setting in rows.items()
    ]
    return Shown(pd.concat(tables), checks, draw(panels, sharey=True), held)


def figure_18() -> Shown:
    """Completion times in us of incast flows with flow control alone."""
    pairs = (*FLOW_CONTROL, "per-flow")
    rows = {
        workload: pd.DataFrame({pair: fct(mix(workload, pair)).loc["incast"] for pair in pairs})
        for workload in scenes.WORKLOADS
    }
    table = pd.concat(rows)
    means, tails = (pd.DataFrame(table.xs(column, level=1)) for column in ("mean", "p99"))
    checks = {
        f"{workload}: Pyrrha's mean is PFC's, within 10%": abs(
            cell(means, workload, "Pyrrha") / cell(means, workload, "PFC") - 1
        )
        < 0.1
        for workload in scenes.WORKLOADS
    }
    checks |= {
        f"{workload}: per-flow queues' mean is less than PFC's": (
            cell(means, workload, "per-flow") < cell(means, workload, "PFC")
        )
        for workload in scenes.WORKLOADS
    }
    checks |= {
        f"{workload}: {bfc}'s mean is less than PFC's": cell(means, workload, bfc) < cell(means, workload, "PFC")
        for workload in scenes.WORKLOADS
        for bfc in ("BFC-32", "BFC-128")
    }
    note = (
        "The paper prints no number: Pyrrha's incast loses nothing to PFC's, and BFC's and per-flow queues' is faster."
    )
    return Shown(table, checks, draw([bars("Incast flows", means, tails, log=False)]), note=note)


def figure_22() -> Shown:
    """Completion times in us with flow control alone, per-flow queues included."""
    shown = compared((*FLOW_CONTROL, "per-flow"), ("PFC",), "Pyrrha", ("Memcached", "Web Server"))
    background, vulnerable = (shown.table[f"{group} p99"]["Memcached"] for group in ("background", "vulnerable"))
    shown.checks["Memcached: per-flow queues have Pyrrha's 99th percentile of background flows, within 10%"] = (
        abs(background["per-flow"] / background["Pyrrha"] - 1) < 0.1
    )
    shown.checks["Memcached: per-flow queues do not have it of vulnerable flows"] = bool(
        vulnerable["per-flow"] > vulnerable["Pyrrha"]
    )
    waits = {pair: slowest_wait(mix("Memcached", pair)) for pair in ("per-flow", "Pyrrha")}
    said = ", ".join(f"{us:.2f} us ({pair})" for pair, us in waits.items())
    shown.checks[f"Memcached: the slowest hundredth of background flows wait longer at their ToR's uplinks: {said}"] = (
        waits["per-flow"] > waits["Pyrrha"]
    )
    return shown


def slowest_wait(result: cw.Result) -> float:
    """The mean time in us that the slowest hundredth of background flows queue on the way up."""
    flows = result.flows.to_pandas()[list(scenes.classes(result) == "background")]
    times = flows["fct_ps"].astype(float)
    return float(flows.loc[times >= times.quantile(0.99), "queued_up_ps"].astype(float).mean()) / 1e6


def bfc_queues() -> Shown:
    """Web Search, vulnerable flows' 99th percentile in us under BFC as published, with 31 and 127 queues for data, and
    the same without its scheduler's slip (`lowest_first`); three seeds."""
    fair = {"flow_control.bfc.departures": ["first_queue", "random_sharing", "hosts_by_flow"]}
    schedulers: dict[str, dict[str, Any]] = {"published": {}, "without lowest_first": fair}
    rows: dict[tuple[str, int], dict[str, float]] = {}
    for scheduler, sets in schedulers.items():
        for seed in (1, 2, 3):
            label = "" if not sets and seed == 1 else f"{scheduler}, seed {seed}"  # the first is figure 11's run
            found = {pair: mix("Web Search", pair, label, {**sets, "seed": seed}) for pair in BFC[2:]}
            rows[scheduler, seed] = {pair: cell(fct(result), "vulnerable", "p99") for pair, result in found.items()}
            rows[scheduler, seed]["flows"] = int((scenes.classes(found[BFC[2]]) == "vulnerable").sum())
    table = pd.DataFrame(rows).T.rename_axis(["scheduler", "seed"])
    times = table[BFC[3]] / table[BFC[2]]
    said = {name: ", ".join(f"{times[name, seed]:.2f}" for seed in (1, 2, 3)) for name in schedulers}
    return Shown(
        table,
        {
            f"as published more queues lengthen the tail: times {said['published']}": bool(
                (times.xs("published") > 1).all()
            ),
            f"without the slip they shorten it: times {said['without lowest_first']}": bool(
                (times.xs("without lowest_first") < 1).all()
            ),
        },
    )


def figure_23() -> Shown:
    """Mean time in us that the last packet of a flow is queued at each hop, with DCQCN."""
    pairs = ("DCQCN + PFC", "DCQCN + Pyrrha")
    tables = {
        (workload, pair): queueing(mix(workload, pair)) for workload in ("Memcached", "Web Server") for pair in pairs
    }
    table = pd.concat(tables)
    checks = {}
    for workload in ("Memcached", "Web Server"):
        pfc, ours = (part(table, (workload, pair)) for pair in pairs)
        checks[f"{workload}: vulnerable flows wait at the core with PFC, and less with Pyrrha"] = bool(
            row(pfc, "vulnerable").idxmax() == "core"
            and row(ours, "vulnerable").sum() < 0.5 * row(pfc, "vulnerable").sum()
        )
        checks[f"{workload}: with Pyrrha incast flows wait at the source's ToR and the core"] = bool(
            cell(ours, "incast", "DstToR") < 0.5 * row(ours, "incast").sum()
        )

    def panel(workload: str, group: str) -> Any:
        return bars(
            f"{workload}, {group}",
            pd.DataFrame({pair: row(table, (workload, pair, group)) for pair in pairs}),
            y="queueing (us)",
            log=False,
        )

    return Shown(
        table,
        checks,
        draw([panel(workload, group) for workload in ("Memcached", "Web Server") for group in CLASSES]),
        note="The paper prints bars and no number; what it says of them has bounds of ours.",
    )


SIZES = (1_500, 10e3, 100e3, 1e6)


def fat_tree(controls: tuple[str, ...], figure: str) -> Shown:
    """Web server sizes and an incast on a fat-tree with k = 16: means in us of Poisson flows by size."""
    duration = f"{100 * scenes.scale:g}us"
    results = {
        pair: run("fat-tree", f"k=16 {pair}", {**keys(pair), "traffic.1.duration": duration}) for pair in controls
    }
    tables = {pair: by_size(result, ["poisson"], SIZES) for pair, result in results.items()}
    means, tails = (pd.DataFrame({pair: table[column] for pair, table in tables.items()}) for column in ("mean", "p99"))
    checks = {}
    for pair in controls:
        control, _, flow_control = pair.rpartition(" + ")
        if flow_control == "PFC" and (ours := f"{control} + Pyrrha" if control else "Pyrrha") in controls:
            small = means.index[:-1]
            checks[f"up to 100 KB: {ours} has lower means and 99th percentiles than {pair}"] = bool(
                (means.loc[small, ours] < means.loc[small, pair]).all()
                and (tails.loc[small, ours] < tails.loc[small, pair]).all()
            )
    if figure == "15":
        checks["Pyrrha with DCQCN has the lowest means up to 10 KB"] = bool(
            (means.iloc[:2].idxmin(axis=1) == "DCQCN + Pyrrha").all()
        )
    # Poisson flows are the uncongested ones.
    all_sizes = table_of(results, ["poisson"])
    rows = {
        pair: in_range(all_sizes, pair, ours, "poisson")
        for pair in controls
        for control, _, flow_control in [pair.rpartition(" + ")]
        if flow_control == "PFC" and (ours := f"{control} + Pyrrha" if control else "Pyrrha") in controls
    }
    return Shown(
        pd.concat({"mean": means, "p99": tails}),
        checks,
        draw(
            [lines("Mean", means, "size up to", "FCT (us)"), lines("99th percentile", tails, "size up to", "FCT (us)")]
        ),
        [
            against_paper(f"{(pair.rpartition(' + ')[0] or 'rdma').lower()} over pyrrha", RANGE, of_pair)
            for pair, of_pair in rows.items()
        ],
        'The paper prints no number: "very similar" to figures 11 and 12, whose range section 1 gives.',
    )


def figure_15() -> Shown:
    """Completion times in us by flow size on 1,024 hosts: flow control alone, and with DCQCN."""
    return fat_tree(("PFC", "BFC-32", "Pyrrha", "DCQCN + PFC", "DCQCN + Pyrrha"), "15")


def figure_20() -> Shown:
    """Completion times in us by flow size on 1,024 hosts: TIMELY and HPCC."""
    return fat_tree(("TIMELY + PFC", "TIMELY + Pyrrha", "HPCC + PFC", "HPCC + Pyrrha"), "20")


# A fat-tree with k = 8, 128 hosts in 32 racks: 720 flows from 120 hosts.
EIGHT = {"fabric.fat_tree.k": 8, "traffic.0.senders": "racks 1-31", "traffic.1.senders": "1-127"}


def eight(name: str, sets: Any) -> cw.Result:
    """A run on the fat-tree with k = 8."""
    return run("fat-tree", f"k=8 {name}", {**EIGHT, "traffic.1.duration": f"{500 * scenes.scale:g}us", **sets})


# The authors' receivers take packets in any order and ask for none again under DRILL: nothing is lost.
ANY_ORDER = {"irn": {"rto_low": "16ms", "rto_high": "16ms", "reordering_packets": 1000}}


def figure_16() -> Shown:
    """Pyrrha with and without DRILL on a fat-tree with k = 8: completion times in us, and the longest queues in KB."""
    drill = {"switch.balancing": {"drill": {"samples": 2, "memory": 1}}}
    results = {
        "Pyrrha": eight("Pyrrha", keys("Pyrrha")),
        "DRILL, Pyrrha": eight("DRILL Pyrrha", {**keys("Pyrrha", recovery=ANY_ORDER), **drill}),
    }
    table = table_of(results, ("poisson", "incast"))
    table = table.join(pd.DataFrame({name: longest(result) for name, result in results.items()}).T)
    less = 100 * (1 - 1 / gain(table, "Pyrrha", "DRILL, Pyrrha", "poisson p99"))
    held = [
        against_paper(
            "rdma over pyrrha, drill", "figure 16", [("Poisson flows", "p99 FCT falls by DRILL, %", less, 18.3, 0.1)]
        )
    ]
    checks = {
        "queues on the way up are shorter with DRILL": (
            cell(table, "DRILL, Pyrrha", "SrcToR") < cell(table, "Pyrrha", "SrcToR")
        ),
        "incast flows take longer with DRILL": (
            cell(table, "DRILL, Pyrrha", "incast mean") > cell(table, "Pyrrha", "incast mean")
        ),
    }
    plain = table.rename(index={"DRILL, Pyrrha": "DRILL + Pyrrha"})
    return Shown(
        table,
        checks,
        draw(
            [
                class_bars("FCT", plain, ("poisson", "incast")),
                bars("Longest queues", plain[list(scenes.TIERS)].T, y="KB"),
            ]
        ),
        held,
    )


def figure_17() -> Shown:
    """99th percentile in us of the completion times of uncongested Memcached flows, by the size of incast flows in
    bandwidth-delay products."""
    pairs = ("BFC-32", "BFC-32 (published)", "Pyrrha", "DCQCN + PFC", "DCQCN + Pyrrha")
    bdps = (0.5, 1, 2, 4, 8)
    rows: dict[float, dict[str, float]] = {}
    for size in bdps:
        rows[size] = {}
        incast = {"traffic.0.sizes": {"constant": f"{round(size * 44) * 1460}B"}}
        for pair in pairs:
            result = mix("Memcached", pair, f"incast {size:g}", incast)
            rows[size][pair] = float(np.quantile(uncongested_us(result), 0.99))
    table = pd.DataFrame(rows).T.rename_axis("BDP")
    stable = table["Pyrrha"].max() / table["Pyrrha"].min()
    checks = {
        f"Pyrrha is stable: within {stable:.2f} times": stable < 1.25,
        **{
            f"{bfc}'s grows with the incast": cell(table, 8, bfc) > 1.25 * cell(table, 0.5, bfc)
            for bfc in ("BFC-32", "BFC-32 (published)")
        },
        "DCQCN over PFC: stable from three products on, within 1.25 times": (
            cell(table, 8, "DCQCN + PFC") < 1.25 * cell(table, 4, "DCQCN + PFC")
        ),
    }
    picture = draw([lines("Uncongested flows", table, "incast flows (BDP)", "99th percentile (us)")])
    note = (
        'The paper prints curves and no number: "stable", "downgrades", "stable after three BDPs" have bounds of ours.'
    )
    return Shown(table, checks, picture, note=note)


def figure_19() -> Shown:
    """Completion times in us when a polarised hash sends half of the flows to the first core."""
    # The weights of four ports fall by this ratio each, so that the first has half.
    skewed = {"switch.balancing": {"skewed": {"skew": 0.5437}}}
    # The first core runs out of memory under Pyrrha, for which section 4.4 has IRN; a pause is no loss.
    patient = {"irn": {"rto_low": "4ms", "rto_high": "4ms"}}
    results = {}
    for pair in ("PFC", "BFC-32", "Pyrrha", "DCQCN + PFC", "DCQCN + Pyrrha"):
        transport = {"recovery": patient} if pair.endswith("Pyrrha") else {}
        results[pair] = mix("Web Server", pair, "polarised", skewed, **transport)
    table = table_of(results)
    table["packets lost"] = [result.dropped for result in results.values()]
    checks = {}
    for base, ours in (("PFC", "Pyrrha"), ("DCQCN + PFC", "DCQCN + Pyrrha")):
        for column in (f"{group} {column}" for group in UNCONGESTED for column in ("mean", "p99")):
            times = gain(table, base, ours, column)
            checks[f"{ours} against {base}, {column}: {times:.2f} times less"] = times > 1
    held = [
        against_paper(
            scheme, RANGE, [row for group in UNCONGESTED for row in in_range(table, base, ours, group, "polarised")]
        )
        for scheme, base, ours in (
            ("rdma over pyrrha", "PFC", "Pyrrha"),
            ("dcqcn over pyrrha", "DCQCN + PFC", "DCQCN + Pyrrha"),
        )
    ]
    note = "The paper prints no number for this figure; the range is that of all its comparisons."
    return Shown(table, checks, draw([class_bars("Web Server, polarised hash", table)]), held, note)


def figure_26() -> Shown:
    """No limit on the sending window: completion times in us, and mean queueing time at the source's ToR."""
    pairs = ("DCQCN + PFC", "DCQCN + IRN", "Pyrrha", "DCQCN + Pyrrha", "HPCC + PFC", "HPCC + Pyrrha")
    results = {
        (pair, window): mix("Web Server", pair, window, window=window) if window else mix("Web Server", pair)
        for pair in pairs
        for window in ("", "unlimited")
    }
    tables = {
        name: table_of({pair: results[pair, window] for pair in pairs})
        for name, window in (("1 BDP", ""), ("no window", "unlimited"))
    }
    up = pd.DataFrame(
        {
            name: {pair: queueing(results[pair, window])["SrcToR"]["background"] for pair in pairs}
            for name, window in (("1 BDP", ""), ("no window", "unlimited"))
        }
    )
    table = pd.concat(tables)
    checks = {
        f"{pair}: background flows queue longer at the source's ToR without": (
            cell(up, pair, "no window") > cell(up, pair, "1 BDP")
        )
        for pair in pairs
    }
    worse = {
        pair: cell(table, ("no window", pair), "background mean") / cell(table, ("1 BDP", pair), "background mean")
        for pair in ("DCQCN + PFC", "Pyrrha", "HPCC + PFC")
    }
    checks["Pyrrha suffers the least: " + ", ".join(f"{pair} {times:.2f}" for pair, times in worse.items())] = worse[
        "Pyrrha"
    ] == min(worse.values())
    said = f"Pyrrha's background flows take slightly longer without: {worse['Pyrrha']:.2f} times, 1 to 1.25"
    checks[said] = 1 <= worse["Pyrrha"] <= 1.25
    with_window = pd.concat({"Web Server": tables["1 BDP"]})
    return Shown(
        table,
        checks,
        draw([class_bars(f"Web Server, {name}", frame) for name, frame in tables.items()], sharey=True),
        beside_authors(with_window),
        "The paper prints no number; with a window, completion times are held against runs of the authors' program.",
    )
