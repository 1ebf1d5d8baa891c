"""The figures of dcPIM's evaluation (SIGCOMM 2022, section 4), the paper's numbers beside ours, its rivals on the same ground.

    python papers/dcpim/reproduce.py figure-3

Each prints a table and whether it shows what the paper says, and leaves a CSV and a picture in `out/dcpim`. What this build has run before
is not run again.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import figures
from figures import Keys, Shown, draw

import clearway as cw

OUT = Path("out/dcpim")
# How many flows, and for how long, as a share of what the scenarios say.
scale = 1.0

# The paper's protocols, in its order, then those that its section 5 and its rivals' papers speak of. HPCC stands on PFC, with the 16 MB a
# switch that table 1 has; NDP brings its queues of 8 packets.
PFC: Keys = {"flow_control": "pfc", "switch.buffer": {"shared": {"bytes": "16MB"}}}
PAPER: Mapping[str, Keys] = {
    "dcPIM": {"transport": "dcpim"},
    "Homa Aeolus": {"transport": "homa_aeolus"},
    "NDP": {"transport": "ndp"},
    "HPCC": {"transport": "hpcc", **PFC},
}
MORE: Mapping[str, Keys] = {
    "Homa": {"transport": "homa"},
    "pHost": {"transport": "phost"},
    "pFabric": {"transport": "pfabric"},
}
ALL = {**PAPER, **MORE}
COLOURS = dict(zip(ALL, ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b")))
WORKLOADS = {"imc10": "IMC10", "websearch": "web search", "datamining": "data mining"}
SIZES = ("short", "medium", "long")
BDP = 72_500


def run(scenario: str, name: str, keys: Keys, flows: bool = True) -> cw.Result:
    """A scenario with some keys set."""
    path = HERE / f"{scenario}.toml"
    if flows and scale != 1.0:
        count = next(part["flows"] for part in cw.Scenario.load(path).to_dict()["traffic"] if "flows" in part)
        keys = {**keys, "traffic.all.flows": max(20, round(count * scale))}
    return figures.run(path, name, keys, OUT)


def by_size(result: cw.Result, bins: Sequence[float] | None = (BDP, 8 * BDP)) -> dict[str, float]:
    """Mean and 99th percentile of all flows, and of short, medium and long ones."""
    sizes = pd.concat([result.slowdown(), result.slowdown(by="size", bins=bins).set_axis(SIZES)])
    return {f"{size} {name}": float(sizes.loc[size, name]) for size in ("all", *SIZES) for name in ("mean", "p99")}


def slowdowns(runs: Mapping[tuple[str, str], cw.Result]) -> pd.DataFrame:
    """A row a workload and scheme: mean and 99th percentile of all flows, and by size."""
    rows = {}
    for at, result in runs.items():
        rows[at] = {**by_size(result), "unfinished": result.unfinished}
    return pd.DataFrame(rows).T.rename_axis(["workload", "scheme"])


def all_to_all(prefix: str, schemes: Mapping[str, Keys]) -> pd.DataFrame:
    """The three workloads by each scheme."""
    runs = {
        (words, scheme): run(f"{prefix}-{workload}", scheme, keys)
        for workload, words in WORKLOADS.items()
        for scheme, keys in schemes.items()
    }
    return slowdowns(runs)


def within(values: pd.Series[float], low: float, high: float, spread: float = 0.1) -> bool:
    """Whether all are within the paper's range, give or take a tenth of its ends."""
    return bool(values.between(low * (1 - spread), high * (1 + spread)).all())


def span(values: pd.Series[float]) -> str:
    return f"{values.min():.3g}-{values.max():.3g}"


def of(table: pd.DataFrame, scheme: str, column: str) -> pd.Series[float]:
    """What the workloads give for a scheme."""
    return table.xs(scheme, level="scheme")[column]


def figure_3a() -> Shown:
    """The highest load of IMC10 that each protocol sustains: where unfinished work does not grow."""
    rows = {}
    for scheme, keys in PAPER.items():
        lasting = {"traffic.all.duration": f"{round(60_000 * scale)}us", "measure.drain": "0us"}
        wanted = cw.Scenario.load(HERE / "figure-3a-sustained.toml").with_({**keys, **lasting, "name": f"figure-3a {scheme}"})
        found = cw.sustain(wanted, low=0.5, high=0.94, resolution=0.04, folder=OUT / "runs", keep=True)
        if found.interrupted:
            raise KeyboardInterrupt
        kept = found.runs.set_index("load")["kept up"].astype(float).sort_index()
        rows[scheme] = {"sustained": found.load, **{f"kept up at {load:g}": value for load, value in kept.items()}}
    table = pd.DataFrame(rows).T.rename_axis("scheme")
    load = table["sustained"].astype(float).fillna(0.0)
    checks = {
        f"dcPIM sustains 0.84 of IMC10 (paper: 0.84), or a step less: {load['dcPIM']:.2f}": load["dcPIM"] >= 0.80,
        "no other protocol of the paper sustains more": bool((load[list(PAPER)] <= load["dcPIM"]).all()),
        "of them Homa Aeolus comes closest": load["Homa Aeolus"] >= load[["NDP", "HPCC"]].max(),
        "all sustain 0.6": bool((load[list(PAPER)] >= 0.58).all()),
    }
    return Shown(table, checks, draw([lambda axes: _bars(axes, load, "sustained load, IMC10")], columns=1))


def figure_3() -> Shown:
    """Slowdown at load 0.6 on the leaf-spine: mean of all flows (3b), mean and 99th percentile by size (3c to 3e)."""
    table = all_to_all("figure-3", ALL)
    return Shown(table, _trend(table, numbers=True), _by_size(table))


def _trend(table: pd.DataFrame, numbers: bool, schemes: Sequence[str] = tuple(PAPER)) -> dict[str, bool]:
    """What section 4.1 says of short flows; its numbers are of the default setup, elsewhere it says that the trend is the same."""
    said = {"dcPIM": ((1.03, 1.04), (1.09, 1.16)), "Homa Aeolus": ((2.5, 2.7), (3.0, 6.1)), "NDP": ((2.5, 4.1), (12.5, 22.3)), "HPCC": ((1.1, 1.9), (2.0, 5.8))}
    checks = {}
    for scheme in schemes:
        mean, tail = of(table, scheme, "short mean"), of(table, scheme, "short p99")
        if numbers:
            (a, b), (c, d) = said[scheme]
            checks[f"{scheme}: short flows' mean {span(mean)} (paper: {a:g}-{b:g})"] = within(mean, a, b)
            checks[f"{scheme}: their 99th percentile {span(tail)} (paper: {c:g}-{d:g})"] = within(tail, c, d)
        if scheme != "dcPIM":
            checks[f"dcPIM's short flows beat {scheme}'s, mean and tail, in all workloads"] = bool(
                (of(table, "dcPIM", "short mean") < mean).all() and (of(table, "dcPIM", "short p99") < tail).all()
            )
    return checks


def figure_4a() -> Shown:
    """A shuffle from rack to rack, with an incast of 50 every 100 us at first: what links to hosts carry, over what the receivers' could."""
    used = {scheme: _use(run("figure-4a-bursty", scheme, keys, flows=False)) * 144 / 16 for scheme, keys in ALL.items()}
    table = pd.DataFrame(used).rename_axis("us")
    settled = {scheme: _settles(values, 0.9 * float(values.loc[800:].mean())) for scheme, values in used.items()}
    late = table.loc[700:].mean()
    table.loc["mean 700-1000"] = late
    table.loc["settled at us"] = pd.Series(settled)
    checks = {
        f"dcPIM uses {late['dcPIM']:.2f} (the paper's log: 0.96-1.00)": late["dcPIM"] >= 0.95,
        f"dcPIM is there after one matching phase or two: {settled['dcPIM']:.0f} us": settled["dcPIM"] <= 130,
        f"NDP and Homa Aeolus take 300-600 us: {settled['NDP']:.0f}, {settled['Homa Aeolus']:.0f}": all(
            300 <= settled[name] <= 600 for name in ("NDP", "Homa Aeolus")
        ),
        f"HPCC stumbles: on average {table['HPCC'].iloc[:-2].mean():.2f} up to the end of the incasts": table["HPCC"].loc[:600].mean()
        < table["dcPIM"].loc[:600].mean(),
    }
    return Shown(table, checks, draw([lambda axes: _over_time(axes, used, "shuffle and incast")], columns=1))


def _use(result: cw.Result, every_us: int = 20) -> pd.Series[float]:
    """Share of the capacity of all links to hosts that was used, by the end of the time that it is of, in us."""
    table = result.utilisation
    of_tier = table["tier"] == "to_host"
    values = pd.Series(table["utilisation"][of_tier], index=table["time_ps"][of_tier] / 1e6)
    return values.groupby(np.ceil(values.index.to_numpy() / every_us) * every_us).mean()


def _settles(use: pd.Series[float], level: float) -> float:
    """Since when it has never been below a level on average over 100 us."""
    below = use.rolling(5, min_periods=1).mean() < level
    return float(use.index[below.to_numpy().nonzero()[0][-1]]) if below.any() else 0.0


def figure_4b() -> Shown:
    """All flows of BDP + 1, dcPIM's worst case: mean and 99th percentile of slowdown."""
    runs = {("BDP + 1", scheme): run("figure-4b-worst-case", scheme, keys) for scheme, keys in ALL.items()}
    table = slowdowns(runs)[["all mean", "all p99", "unfinished"]]
    flat = table.loc["BDP + 1"]
    checks = {
        f"HPCC's mean is below dcPIM's: {flat.loc['HPCC', 'all mean']:.3g} to {flat.loc['dcPIM', 'all mean']:.3g}": flat.loc["HPCC", "all mean"]
        < flat.loc["dcPIM", "all mean"],
        "its tail is slightly below or like dcPIM's": flat.loc["HPCC", "all p99"] < 1.1 * flat.loc["dcPIM", "all p99"],
        "NDP and Homa Aeolus are worse than dcPIM, mean and tail": bool(
            (flat.loc[["NDP", "Homa Aeolus"], ["all mean", "all p99"]] > flat.loc["dcPIM", ["all mean", "all p99"]]).all().all()
        ),
    }
    panels = [lambda axes, column=column: _bars(axes, flat[column], column.replace("all ", "")) for column in ("all mean", "all p99")]
    return Shown(table, checks, draw(panels, columns=2))


def figure_4c() -> Shown:
    """A traffic matrix that is not sparse, each host to each other: utilisation of the links to hosts."""
    used = {scheme: _use(run("figure-4c-dense", scheme, keys, flows=False)) for scheme, keys in ALL.items()}
    table = pd.DataFrame(used).rename_axis("us")
    late = table.loc[300:1200].mean()
    table.loc["mean 300-1200"] = late
    rivals = [name for name in PAPER if name != "dcPIM"]
    checks = {
        f"dcPIM uses {late['dcPIM']:.3f} (paper: 0.935)": abs(late["dcPIM"] - 0.935) < 0.02,
        "HPCC, NDP and Homa Aeolus use less: " + ", ".join(f"{late[name]:.2f}" for name in rivals): bool((late[rivals] < late["dcPIM"]).all()),
    }
    return Shown(table, checks, draw([lambda axes: _over_time(axes, used, "144 x 143 flows")], columns=1))


def figure_5ab() -> Shown:
    """The leaf-spine oversubscribed 2:1, load 0.5: slowdown of all flows, and by size. The paper has no Homa Aeolus here."""
    table = all_to_all("figure-5-oversubscribed", ALL)
    return Shown(table, _trend(table, numbers=False, schemes=("dcPIM", "NDP", "HPCC")), _by_size(table))


def figure_5cd() -> Shown:
    """The fat-tree with 1,024 hosts at load 0.6: slowdown of all flows, and by size."""
    table = all_to_all("figure-5-fat-tree", ALL)
    return Shown(table, _trend(table, numbers=False), _by_size(table))


SENSITIVITY = {"rounds": (1, 2, 3, 4, 5), "channels": (1, 2, 4, 8), "beta": (1.0, 1.1, 1.2, 1.3, 1.5, 2.0)}


def figure_6() -> Shown:
    """Rounds, channels and slack of dcPIM at load 0.54 of IMC10; and the load that one round sustains, and two."""
    rows = {}
    for key, values in SENSITIVITY.items():
        for value in values:
            result = run("figure-6", f"{key} {value:g}", {f"transport.dcpim.{key}": value})
            rows[key, f"{value:g}"] = by_size(result)
    table = pd.DataFrame(rows).T.rename_axis(["parameter", "value"])
    mean = table["all mean"].astype(float)
    carried = {rounds: _carried(rounds) for rounds in (1, 2)}
    gain = carried[2] / carried[1] - 1
    table["carried at 0.8"] = [carried.get(int(value)) if key == "rounds" else None for key, value in rows]
    beta = mean["beta"]
    checks = {
        f"offered 0.8, two rounds carry {gain:.0%} more than one ({carried[1]:.3f} and {carried[2]:.3f}; paper: 18-24% more)": gain >= 0.18,
        "from one round to two the tail gets better": table.loc[("rounds", "2"), "all p99"] < table.loc[("rounds", "1"), "all p99"],
        "from two on more rounds cost latency": bool(mean["rounds"].loc["2":].is_monotonic_increasing),  # type: ignore[misc]
        "2 to 4 channels are no worse than 1 or 8": mean["channels"][["2", "4"]].max() <= mean["channels"][["1", "8"]].min() * 1.01,
        f"beta above 1.1 costs no more than its longer phases: {beta['1.1']:.3g} to {beta['1.3']:.3g}": beta["1.3"] / beta["1.1"] < 1.3 / 1.1,
    }
    panels = [lambda axes, key=key: _sensitivity(axes, table.loc[key], key) for key in SENSITIVITY]  # type: ignore[misc]
    return Shown(table, checks, draw(panels))


def _carried(rounds: int) -> float:
    """What the links to hosts carry in the last quarter of 15 ms at load 0.8, headers counted."""
    us = round(15_000 * scale)
    keys = {"traffic.all.arrivals.poisson.load": 0.8, "traffic.all.duration": f"{us}us", "measure.end": f"{us}us", "traffic.all.flows": 10**7}
    result = figures.run(HERE / "figure-6.toml", f"rounds {rounds} at 0.8", {"transport.dcpim.rounds": rounds, **keys}, OUT)
    return float(_use(result).loc[us * 3 / 4 :].mean())


def figure_7() -> Shown:
    """The testbed's fabric, 32 hosts at 10 Gbps, web search at load 0.5: dcPIM, DCTCP and CUBIC."""
    schemes: dict[str, Keys] = {"dcPIM": {"transport": "dcpim"}, "DCTCP": {"transport": "dctcp"}, "TCP CUBIC": {"transport": "cubic"}}
    # Sizes by the testbed's own bandwidth-delay product.
    rows = {scheme: by_size(run("figure-7-testbed", scheme, keys), None) for scheme, keys in schemes.items()}
    table = pd.DataFrame(rows).T.rename_axis("scheme")
    ratio = table / table.loc["dcPIM"]
    table = pd.concat([table, ratio.iloc[1:].rename(index=lambda name: f"{name} / dcPIM")])
    mean, tail, long = (ratio.loc[["DCTCP", "TCP CUBIC"], column] for column in ("short mean", "short p99", "long mean"))
    checks = {
        "dcPIM, DCTCP, CUBIC in this order, short and long, mean and tail": bool((mean > 1).all() and (tail > 1).all() and mean.is_monotonic_increasing),
        f"short flows' mean {span(mean)} times dcPIM's (paper, hosts with Linux's stack: 21-43)": within(mean, 21, 43),
        f"their 99th percentile {span(tail)} times (paper: 34-76)": within(tail, 34, 76),
        f"long flows {span(long)} times slower (paper: 1.71-2.61)": within(long, 1.71, 2.61),
    }
    panels = [lambda axes, column=column: _bars(axes, table.iloc[:3][column], column, log=True) for column in ("short mean", "short p99", "long mean")]
    return Shown(table, checks, draw(panels))


def _log(axes: Axes) -> None:
    """Slowdowns on a logarithmic axis, with ticks that people read."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _bars(axes: Axes, values: pd.Series[float], title: str, log: bool = False) -> None:
    colours = [COLOURS.get(str(name), "#8a8f98") for name in values.index]
    axes.bar(range(len(values)), values.to_numpy(dtype=float), 0.7, color=colours)
    axes.set_xticks(range(len(values)), [str(name).replace(" ", "\n") for name in values.index], fontsize=7.5)
    for x, value in enumerate(values):
        axes.annotate(f"{value:.3g}", (x, value), (0, 2), textcoords="offset points", ha="center", fontsize=7.5)
    axes.set_title(title)
    axes.grid(axis="x", visible=False)
    axes.margins(y=0.12)
    if log:
        _log(axes)


def _by_size(table: pd.DataFrame) -> Any:
    """Mean and 99th percentile by size, a row a workload."""

    def panel(axes: Axes, workload: str, statistic: str) -> None:
        schemes = list(dict.fromkeys(table.index.get_level_values("scheme")))
        width = 0.86 / len(schemes)
        for place, scheme in enumerate(schemes):
            values = [float(table.loc[(workload, scheme), f"{size} {statistic}"]) for size in ("all", *SIZES)]
            at = np.arange(4) + (place - (len(schemes) - 1) / 2) * width
            axes.bar(at, values, width * 0.92, color=COLOURS[scheme], label=scheme)
        _log(axes)
        axes.set_ylim(bottom=0.9)
        axes.set_xticks(range(4), ("all", *SIZES))
        axes.set_title(f"{workload}: {'mean' if statistic == 'mean' else '99th percentile'}")
        axes.set_ylabel("slowdown")
        axes.grid(axis="x", visible=False)
        if workload == "IMC10" and statistic == "mean":
            axes.legend(fontsize=6.5, ncols=2)

    cells = [(workload, statistic) for workload in WORKLOADS.values() for statistic in ("mean", "p99")]
    return draw([lambda axes, cell=cell: panel(axes, *cell) for cell in cells], columns=2)  # type: ignore[misc]


def _over_time(axes: Axes, used: Mapping[str, pd.Series[float]], title: str) -> None:
    for scheme, values in used.items():
        axes.plot(values.index, values, color=COLOURS[scheme], label=scheme, linestyle="-" if scheme in PAPER else (0, (4, 2)), linewidth=1.3)
    axes.set(xlabel="time (us)", ylabel="share of capacity", ylim=(0, 1.05))
    axes.set_title(title)
    axes.legend(fontsize=7, ncols=2)


def _sensitivity(axes: Axes, rows: pd.DataFrame, key: str) -> None:
    for column, colour in (("all mean", "#0072b2"), ("short mean", "#009e73"), ("all p99", "#d55e00"), ("short p99", "#e69f00")):
        axes.plot(rows.index, rows[column].astype(float), marker="o", color=colour, label=column)
    _log(axes)
    axes.set_title(key)
    axes.set_ylabel("slowdown")
    axes.legend(fontsize=7)


FIGURES: figures.Figures = {
    "figure-3a": figure_3a,
    "figure-3": figure_3,
    "figure-4a": figure_4a,
    "figure-4b": figure_4b,
    "figure-4c": figure_4c,
    "figure-5ab": figure_5ab,
    "figure-5cd": figure_5cd,
    "figure-6": figure_6,
    "figure-7": figure_7,
}


def main(
    which: Annotated[list[str] | None, typer.Argument(help="Figures, such as figure-3; or all.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List them.")] = False,
    scale_: Annotated[float, typer.Option("--scale", help="This many times as many flows, for as much longer.")] = 1.0,
) -> None:
    """Reproduces the figures of dcPIM's evaluation."""
    global scale
    scale = scale_
    figures.show(FIGURES, None if list_ else which, OUT, digits=3)


if __name__ == "__main__":
    typer.run(main)
