"""Other traffic, other fabrics and sensitivity (dcPIM, SIGCOMM 2022, sections 4.1 to 4.3): figures 4 to 7."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import clearway as cw
from clearway.papers import figures
from clearway.papers.figures import Held, Keys, Shown, cell, draw, row

from . import pictures, setting
from .default_setup import STEP, trend
from .published import HERE, by_class, plotted, published
from .setting import (
    ALL,
    AS_RUN,
    BOTH,
    KEYS,
    OF_PLOTS,
    OF_RIVALS,
    PAPER,
    PLOTS,
    PROGRAM,
    SCHEMES,
    THEIR_PLOTS,
    THEIR_PROGRAM,
    WORKLOADS,
    all_to_all,
    as_plotted,
    as_run,
    by_size,
    run,
    wanted,
)


def figure_4a() -> Shown:
    """Shuffle between racks, at first with a 50-to-1 incast every 100 us: data received, without retransmissions, as a
    share of the capacity of the receivers' links. The authors' traffic and metric."""
    used = {
        scheme: _use(run("figure-4a-bursty", scheme, keys, flows=False)) * 144 / 16
        for scheme, keys in wanted(ALL).items()
    }
    used["dcPIM, their program's"] = _use(run("figure-4a-bursty", "as its program", PROGRAM, flows=False)) * 144 / 16
    table = pd.DataFrame(used).rename_axis("us")
    settled = {scheme: _settles(values, 0.9 * float(values.loc[800:].mean())) for scheme, values in used.items()}
    table.loc["mean 700-1200"] = table.loc[700:].mean()
    table.loc["settled at us"] = pd.Series(settled)
    checks = {f"dcPIM is there after one matching phase or two: {settled['dcPIM']:.0f} us": settled["dcPIM"] <= 130}
    for name in ("NDP", "Homa Aeolus"):
        if name in used:
            checks[f"{name} takes 300-600 us: {settled[name]:.0f}"] = 300 <= settled[name] <= 600
    if "HPCC" in used:
        stumbles = f"HPCC stumbles: on average {used['HPCC'].loc[:600].mean():.2f} up to the end of the incasts"
        checks[stumbles] = used["HPCC"].loc[:600].mean() < used["dcPIM"].loc[:600].mean()
    held = []
    for scheme, name in (("dcpim", "dcPIM"), ("dcpim with departures = authors_2022", "dcPIM, their program's")):
        after = used[name].loc[80:1200]
        rows = [
            {
                "bucket": "shuffle with incast, after 60 us",
                "statistic": f"{what} data share in 20 us",
                "ours": ours,
                "theirs": theirs,
                "within": 0.03,
            }
            for what, ours, theirs in (("lowest", after.min(), 0.96), ("highest", after.max(), 1.0))
        ]
        held.append(Held(scheme, f"{THEIR_PROGRAM}, figure 4a", "authors' run", pd.DataFrame(rows)))
    return Shown(
        table, checks, draw([lambda axes: pictures.over_time(axes, used, "shuffle and incast")], columns=1), held
    )


def _use(result: cw.Result, every_us: int = 20) -> pd.Series[float]:
    """Share of the capacity of all links to hosts that data took which came for the first time, headers counted, as
    the authors count; by the end of the time that it is of, in us."""
    table = result.utilisation
    of_tier = table["tier"] == "to_host"
    values = pd.Series(table["data_share"][of_tier], index=table["time_ps"][of_tier] / 1e6)
    return values.groupby(np.ceil(values.index.to_numpy() / every_us) * every_us).mean()


def _settles(use: pd.Series[float], level: float) -> float:
    """Since when it has never been below a level on average over 100 us."""
    below = use.rolling(5, min_periods=1).mean() < level
    return float(use.index[below.to_numpy().nonzero()[0][-1]]) if below.any() else 0.0


def figure_4b() -> Shown:
    """All flows of BDP + 1 bytes, dcPIM's worst case: mean and 99th percentile of slowdown, with the ideal completion
    time of the paper's plots."""
    runs = {scheme: as_run("figure-4b-worst-case", scheme, keys) for scheme, keys in wanted(BOTH).items()}
    table = pd.DataFrame(
        {scheme: by_class(as_plotted(scheme, result)).loc["all", ["mean", "p99"]] for scheme, result in runs.items()}
    ).T
    table = table.rename(columns={"mean": "all mean", "p99": "all p99"}).rename_axis("scheme")
    table["unfinished"] = [result.unfinished for result in runs.values()]
    checks = {}
    if "HPCC" in table.index:
        hpcc, dcpim = table.loc["HPCC"], table.loc["dcPIM"]
        checks[f"HPCC's mean is below dcPIM's: {hpcc['all mean']:.3g} to {dcpim['all mean']:.3g}"] = bool(
            hpcc["all mean"] < dcpim["all mean"]
        )
        checks["its tail is slightly below or like dcPIM's"] = bool(hpcc["all p99"] < 1.1 * dcpim["all p99"])
    for rival in ("NDP", "Homa Aeolus", *AS_RUN):
        if rival in table.index:
            worse = table.loc[rival, ["all mean", "all p99"]] > table.loc["dcPIM", ["all mean", "all p99"]]
            checks[f"{rival} is worse than dcPIM, mean and tail"] = bool(worse.all())
    panels = [
        lambda axes, column=column: pictures.bars(axes, table[column], column.replace("all ", ""))
        for column in ("all mean", "all p99")
    ]
    return Shown(table, checks, draw(panels, columns=2), _ndp_in_4b() if "NDP (as run)" in runs else [])


# NDP's program of 2017 with 10,000 such messages of other draws, by the ideal time of the plots (docs/schemes/ndp.md).
NDP_IN_4B = {"mean": 8.4, "p99": 27.6}


def _ndp_in_4b() -> list[Held]:
    """With as few messages as its program was run with: at this load its backlog grows."""
    keys = {**AS_RUN["NDP (as run)"], "traffic.all.flows": 10_000}
    ours = by_class(plotted(as_run("figure-4b-worst-case", "NDP (as run)", keys, "of 10,000"), payload=1_500)).loc[
        "all"
    ]
    rows = [
        {
            "bucket": "50 packets each",
            "statistic": f"{statistic} slowdown",
            "ours": ours[statistic],
            "theirs": value,
            "within": OF_RIVALS[statistic],
        }
        for statistic, value in NDP_IN_4B.items()
    ]
    return [
        Held(
            SCHEMES["NDP (as run)"],
            "its authors' program of 2017, 10,000 messages of BDP + 1 at load 0.6, other draws",
            "authors' run",
            pd.DataFrame(rows),
        )
    ]


def figure_4c() -> Shown:
    """Dense traffic matrix, every host to every other: data received, without retransmissions, as a share of the
    capacity of the links to hosts. The authors' traffic and metric."""
    used = {scheme: _use(run("figure-4c-dense", scheme, keys, flows=False)) for scheme, keys in wanted(ALL).items()}
    used["dcPIM, their program's"] = _use(run("figure-4c-dense", "as its program", PROGRAM, flows=False))
    table = pd.DataFrame(used).rename_axis("us")
    late = table.loc[220:1200].mean()
    table.loc["mean 200-1200"] = late
    checks = {
        f"{name} uses less: {late[name]:.2f}": bool(late[name] < late["dcPIM"])
        for name in wanted(PAPER)
        if name != "dcPIM"
    }
    held = [
        Held(scheme, f"{THEIR_PROGRAM}, figure 4c", "authors' run", pd.DataFrame([{**row, "ours": late[name]}]))
        for scheme, name in (("dcpim", "dcPIM"), ("dcpim with departures = authors_2022", "dcPIM, their program's"))
        for row in [
            {"bucket": "144 x 143 flows, 0.2 to 1.2 ms", "statistic": "data share", "theirs": 0.934, "within": 0.01}
        ]
    ]
    return Shown(table, checks, draw([lambda axes: pictures.over_time(axes, used, "144 x 143 flows")], columns=1), held)


def figure_5ab() -> Shown:
    """Leaf-spine with 2:1 oversubscription at load 0.5: slowdown of all flows, and by size. The paper does not show
    Homa Aeolus here."""
    table = all_to_all("figure-5-oversubscribed", wanted(ALL))
    marks = _marks("oversubscribed", 0.5, table)
    schemes = tuple(name for name in wanted(PAPER) if name != "Homa Aeolus")
    return Shown(
        table,
        trend(table, numbers=False, schemes=schemes),
        pictures.by_size(table, marks),
        _all_flows("2:1 oversubscribed", table, marks),
    )


def figure_5cd() -> Shown:
    """Fat-tree with 1,024 hosts at load 0.6: slowdown of all flows, and by size."""
    table = all_to_all("figure-5-fat-tree", wanted(ALL))
    marks = _marks("fat_tree", 0.6, table)
    return Shown(
        table,
        trend(table, numbers=False, schemes=tuple(wanted(PAPER))),
        pictures.by_size(table, marks),
        _all_flows("the fat-tree", table, marks),
    )


def _marks(fabric: str, load: float, table: pd.DataFrame) -> dict[tuple[str, str], dict[str, float]]:
    """The published mean and 99th percentile of all flows, a workload and scheme that there is."""
    said = published(fabric)
    found = {}
    row: Any
    for row in said.reset_index().itertuples():
        for where in [(WORKLOADS[row.workload], name) for name, key in KEYS.items() if key == row.scheme]:
            if (row.load, row.flows) == (load, "all") and where in table.index:
                found[where] = {"all mean": float(row.mean), "all p99": float(row.p99)}
    return found


def _all_flows(where: str, table: pd.DataFrame, marks: Mapping[tuple[str, str], Mapping[str, float]]) -> list[Held]:
    """Each scheme's numbers of all flows against the published ones."""
    held = []
    for scheme in dict.fromkeys(scheme for _, scheme in marks):
        whose, within = (THEIR_PLOTS, (0.08, 0.2)) if scheme == "dcPIM" else (PLOTS, tuple(OF_RIVALS.values()))
        rows = [
            {
                "bucket": f"{words}, all",
                "statistic": f"{column.removeprefix('all ')} slowdown",
                "ours": cell(table, (words, scheme), column),
                "theirs": value,
                "within": share,
            }
            for words in WORKLOADS.values()
            for (column, value), share in zip(marks.get((words, scheme), {}).items(), within)
        ]
        held.append(Held(SCHEMES[scheme], f"{whose}, {where}", "paper", pd.DataFrame(rows)))
    return held


SENSITIVITY = {"rounds": (1, 2, 3, 4, 5), "channels": (1, 2, 4, 8), "beta": (1.0, 1.1, 1.2, 1.3, 1.5, 2.0)}


def figure_6() -> Shown:
    """dcPIM with different numbers of rounds and channels and different slack (beta): slowdown of IMC10 at load 0.54,
    and the load carried with one and with two rounds when 0.8 is offered."""
    rows = {}
    for key, values in SENSITIVITY.items():
        for value in values:
            result = run("figure-6", f"{key} {value:g}", {f"transport.dcpim.{key}": value})
            rows[key, f"{value:g}"] = by_size(result)
    table = pd.DataFrame(rows).T.rename_axis(["parameter", "value"])
    mean = table["all mean"].astype(float)
    carried = {rounds: _carried(rounds) for rounds in (1, 2)}
    # Points of the links' capacity, as the authors' own table of figure 6a has them (GRID): 20 to 22.
    gain = carried[2] - carried[1]
    table["carried at 0.8"] = [carried.get(int(value)) if key == "rounds" else None for key, value in rows]
    beta, channels = mean.xs("beta"), mean.xs("channels")
    checks = {
        f"offered 0.8, two rounds carry {carried[2]:.3f}, one {carried[1]:.3f} (paper: 18 to 24 points more)": bool(
            0.18 <= gain <= 0.24
        ),
        "from one round to two the tail gets better": cell(table, ("rounds", "2"), "all p99")
        < cell(table, ("rounds", "1"), "all p99"),
        "from two on more rounds cost latency": bool(mean.xs("rounds").loc["2":].is_monotonic_increasing),
        "2 to 4 channels are no worse than 1 or 8": channels[["2", "4"]].max() <= channels[["1", "8"]].min() * 1.01,
        f"beta above 1.1 costs no more than its longer phases: {beta['1.1']:.3g} to {beta['1.3']:.3g}": beta["1.3"]
        / beta["1.1"]
        < 1.3 / 1.1,
    }
    panels = [lambda axes, key=key: pictures.sensitivity(axes, table.loc[key], key) for key in SENSITIVITY]
    return Shown(table, checks, draw(panels), [_by_rounds_and_channels()])


# Of the authors' 20 points those with the default of one of the two; and their number of flows.
POINTS = [*((rounds, 4) for rounds in (1, 2, 3, 4, 5)), *((4, channels) for channels in (1, 2, 8))]
THEIR_FLOWS = 1_000_000


def _by_rounds_and_channels() -> Held:
    """Figures 6b and 6c beside the numbers behind them, by the ideal time of the authors' plots."""
    theirs = pd.read_csv(figures.reference(HERE, "figure_6.csv")).set_index(["rounds", "channels"])
    rows = []
    for rounds, channels in POINTS:
        parameters = {"transport.dcpim.rounds": rounds, "transport.dcpim.channels": channels}
        keys = {**parameters, "traffic.all.flows": THEIR_FLOWS}
        ours = by_class(plotted(run("figure-6", f"r {rounds}, k {channels}, a million flows", keys))).loc["all"]
        at = row(theirs, (rounds, channels))
        rows += [
            (f"r = {rounds}, k = {channels}", f"{name} slowdown", ours[name], at[name], OF_PLOTS[name])
            for name in ("mean", "p99")
        ]
    return Held("dcpim", f"{THEIR_PLOTS}, figure 6", "paper", pd.DataFrame(rows, columns=list(Held.COLUMNS)))


GRID = {1: (54, 56, 56, 56), 2: (74, 76, 78, 78), 3: (76, 80, 82, 84), 4: (74, 80, 82, 84), 5: (72, 78, 82, 84)}


def figure_6a() -> Shown:
    """The load of IMC10, in percent, that dcPIM sustains with r rounds and k channels, beside the numbers of the
    authors' artifact."""
    rows, held = {}, []
    lasting = {"traffic.all.duration": f"{round(60_000 * setting.scale)}us", "measure.drain": "0us"}
    base = cw.Scenario.load(setting.HERE / "figure-3a-sustained.toml")
    for rounds, listed in GRID.items():
        for channels, theirs in zip((1, 2, 4, 8), listed):
            keys: Keys = {
                "transport": {"dcpim": {"rounds": rounds, "channels": channels, "departures": "paper"}},
                "name": f"figure-6a r {rounds}, k {channels}",
            }
            wanted_here = base.with_({**keys, **lasting})
            found = figures.sustain(wanted_here, setting.OUT, low=0.4, high=0.94, resolution=STEP, near=theirs / 100)
            sustained = 100 * (found.load or 0.0)
            rows[rounds, channels] = {"ours": sustained, "paper": theirs}
            held.append(
                {
                    "bucket": f"r = {rounds}, k = {channels}",
                    "statistic": "sustained load, %",
                    "ours": sustained,
                    "theirs": theirs,
                    "within": 0.06,
                }
            )
    table = pd.DataFrame(rows).T.rename_axis(["r", "k"])
    ours = table["ours"]
    checks = {
        f"k = {k}: two rounds sustain 18 to 24 points more than one": bool(
            18 <= ours.loc[(2, k)] - ours.loc[(1, k)] <= 24
        )
        for k in (1, 2, 4, 8)
    }
    panels = [lambda axes, who=who: pictures.grid(axes, table[who].unstack(), who) for who in table.columns]
    return Shown(
        pd.DataFrame(table.unstack()),
        checks,
        draw(panels),
        [Held("dcpim", "the table of its authors' artifact, figure 6a", "paper", pd.DataFrame(held))],
    )


def _carried(rounds: int) -> float:
    """The data share of the links to hosts in the last quarter of 15 ms at load 0.8."""
    us = round(15_000 * setting.scale)
    keys = {
        "traffic.all.arrivals.poisson.load": 0.8,
        "traffic.all.duration": f"{us}us",
        "measure.end": f"{us}us",
        "traffic.all.flows": 10**7,
    }
    result = figures.run(
        setting.HERE / "figure-6.toml",
        f"rounds {rounds} at 0.8",
        {"transport.dcpim.rounds": rounds, **keys},
        setting.OUT,
    )
    return float(_use(result).loc[us * 3 / 4 :].mean())


def figure_7() -> Shown:
    """The testbed's fabric, 32 hosts at 10 Gbps, with web search at load 0.5: slowdown of dcPIM, DCTCP and CUBIC."""
    schemes: dict[str, Keys] = {
        "dcPIM": {"transport": {"dcpim": {"departures": "paper"}}},
        "DCTCP": {"transport": "dctcp"},
        "TCP CUBIC": {"transport": "cubic"},
    }
    # Sizes by the testbed's own bandwidth-delay product.
    rows = {scheme: by_size(run("figure-7-testbed", scheme, keys), None) for scheme, keys in schemes.items()}
    table = pd.DataFrame(rows).T.rename_axis("scheme")
    ratio = table / table.loc["dcPIM"]
    table = pd.concat([table, ratio.iloc[1:].rename(index=lambda name: f"{name} / dcPIM")])
    rivals = ratio.loc[["DCTCP", "TCP CUBIC"]]
    mean, tail, long = rivals["short mean"], rivals["short p99"], rivals["long mean"]
    checks = {}
    for size in ("short", "long", "all"):
        for statistic in ("mean", "p99"):
            dctcp, cubic = (cell(rivals, rival, f"{size} {statistic}") for rival in ("DCTCP", "TCP CUBIC"))
            numbers = f"DCTCP {dctcp:.2f}, CUBIC {cubic:.2f} times dcPIM's, in this order"
            checks[f"{size} flows, {statistic}: {numbers}"] = 1 < dctcp < cubic
    # The paper's ranges over both rivals, whose hosts run Linux's stack: the middle, and what is either side of it.
    ranges = [
        ("short flows", "mean", mean, 21, 43),
        ("short flows", "p99", tail, 34, 76),
        ("long flows", "mean", long, 1.71, 2.61),
    ]
    rows_held = [
        (
            f"{size}, {rival}",
            f"{what} over dcPIM's, times ({low:g} to {high:g})",
            of_rivals[rival],
            middle,
            high / middle - 1,
        )
        for size, what, of_rivals, low, high in ranges
        for middle in [(low + high) / 2]
        for rival in rivals.index
    ]
    held = [Held("dcpim", "section 4.2, testbed", "paper", pd.DataFrame(rows_held, columns=list(Held.COLUMNS)))]
    panels = [
        lambda axes, column=column: pictures.bars(axes, table.iloc[:3][column], column, log=True)
        for column in ("short mean", "short p99", "long mean")
    ]
    return Shown(table, checks, draw(panels), held)
