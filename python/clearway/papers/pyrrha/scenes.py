"""Shared by the figures of Pyrrha's paper: pairs of flow control and congestion control, runs of them, and how they
are drawn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

import clearway as cw
from clearway.papers import figures
from clearway.papers.figures import Keys
from clearway.reports.looks import COLOURS

HERE = Path(__file__).parent
OUT = Path("out/pyrrha")

# Arrivals are this many times as long as by default.
scale = 1.0

# PFC as in the authors' code, which shifts the free memory right by 2 for ports of 100 Gbps (the paper's "alpha = 2")
# and by less for faster ones.
FLOW_CONTROLS: dict[str, Any] = {
    "PFC": {"pfc": {"alpha": 0.25, "per_rate": "100Gbps", "headroom_bdps": 4.0}},
    "BFC-32": "bfc",
    "BFC-128": {"bfc": {"queues": {"physical": 128}}},
    # As the authors' program has it, where one of the queues is for control alone.
    "BFC-32 (published)": {"bfc": {"queues": {"physical": 31}, "departures": "published"}},
    "BFC-128 (published)": {"bfc": {"queues": {"physical": 127}, "departures": "published"}},
    "per-flow": "per_flow_queues",
    "Pyrrha": "pyrrha",
    "IRN": "none",
}
CONTROLS = {"DCQCN": "dcqcn", "TIMELY": "timely", "HPCC": "hpcc"}
# A colour for a flow control in whatever company.
COLOUR = dict(
    zip(("PFC", "Pyrrha", "per-flow", "BFC-32", "BFC-128", "IRN", "BFC-32 (published)", "BFC-128 (published)"), COLOURS)
)

CLASSES = ("vulnerable", "background", "incast")
TIERS = {"SrcToR": "up", "core": "down", "DstToR": "to_host"}
WORKLOADS = {"Memcached": "memcached", "Web Server": "webserver", "Web Search": "websearch"}
# As the authors' code has it: 50,000 flows of Memcached are 6 us of arrivals, of Web Server 2 ms. Those of Web Search
# would be 50.
ARRIVALS_US = {"Memcached": 6, "Web Server": 2_000, "Web Search": 2_000}


def keys(pair: str, **transport: Any) -> Keys:
    """The keys of a pair such as "DCQCN + Pyrrha", or of a flow control alone, which has the window but no rate
    control."""
    control, _, flow_control = pair.rpartition(" + ")
    settings = {"ack_class": 3, **transport}
    if flow_control.endswith("(published)"):
        settings.setdefault("window", "unlimited")  # their settings for BFC have none, those for the others do
    if flow_control == "IRN":
        settings["recovery"] = "irn"
    if control == "DCQCN" and flow_control != "Pyrrha":
        # Section 6.2.1 has 50 and 200 KB for Pyrrha, which keeps queues short; the authors' settings without it are
        # these.
        settings.setdefault("control", {"mark_min": "400KB", "mark_max": "1600KB"})
    sets: dict[str, Any] = {
        "flow_control": FLOW_CONTROLS[flow_control],
        "transport": {CONTROLS.get(control, "rdma"): settings},
    }
    if flow_control.startswith("BFC") or flow_control == "per-flow":
        sets["switch.buffer.shared.bytes"] = "100MB"  # their switches lose nothing under these
    return sets


def run(scenario: str, name: str, sets: Keys) -> cw.Result:
    """A scenario with some keys set."""
    return figures.run(HERE / f"{scenario}.toml", name, sets, OUT)


def mix(workload: str, pair: str, name: str = "", sets: Keys | None = None, **transport: Any) -> cw.Result:
    """The incast mix of section 6."""
    arrivals = f"{ARRIVALS_US[workload] * scale:g}us"
    traffic = {f"traffic.{index}.sizes": WORKLOADS[workload] for index in (1, 2, 3)}
    traffic |= {f"traffic.{index}.duration": arrivals for index in (1, 2, 3)}
    label = " ".join(part for part in (workload, pair, name) if part)
    result = run("incastmix", label, {**traffic, **keys(pair, **transport), **(sets or {})})
    if result.unfinished:
        print(f"  {result.name}: {result.unfinished} of {len(result.flows)} flows did not finish", file=sys.stderr)
    return result


def classes(result: cw.Result) -> pd.Series[str]:
    """Each flow's class, as the authors cut them."""
    return pd.Series(result.flows["class"]).str.partition(",")[0]


def fct(result: cw.Result) -> pd.DataFrame:
    """Mean and 99th percentile of each class's completion times, in us."""
    times = pd.Series(result.flows["fct_ps"].astype(float) / 1e6)
    groups = times.groupby(classes(result))
    return pd.DataFrame({"mean": groups.mean(), "p99": groups.quantile(0.99)})


def by_size(result: cw.Result, wanted: Sequence[str], limits: Sequence[float]) -> pd.DataFrame:
    """Mean and 99th percentile of completion times in us, by size up to each limit in bytes."""
    chosen = classes(result).isin(wanted)
    times = pd.Series(result.flows["fct_ps"].astype(float) / 1e6)[chosen]
    sizes = pd.cut(
        pd.Series(result.flows["bytes"].astype(float))[chosen], [0, *limits], labels=[volume(top) for top in limits]
    )
    groups = times.groupby(sizes, observed=True)
    return pd.DataFrame({"mean": groups.mean(), "p99": groups.quantile(0.99)})


def volume(size: float) -> str:
    """A number of bytes as people write it."""
    for unit, power in (("MB", 1e6), ("KB", 1e3)):
        if size >= power:
            return f"{size / power:g} {unit}"
    return f"{size:g} B"


def longest(result: cw.Result) -> pd.Series[float]:
    """The longest queue of a port at each hop, in KB."""
    links = result.links.to_pandas()
    most = links.groupby("tier", observed=True)["queued_bytes_max"].max().astype(float) / 1e3
    return pd.Series({hop: most[tier] for hop, tier in TIERS.items()})


def buffers(result: cw.Result) -> pd.Series[float]:
    """The most that waits at a hop at once, in KB, as the authors' `getBuffer.sh` adds it up: at all ports up of a
    ToR, at all ports of a core, at all ports down of a ToR; samples 10 us apart, as theirs."""
    queues = result.queues.to_pandas()
    tor = queues["switch"].astype(str).str.startswith("leaf")
    most = {
        "SrcToR": queues.loc[tor, "up_bytes"].max(),
        "core": (queues["up_bytes"] + queues["down_bytes"])[~tor].max(),
        "DstToR": queues.loc[tor, "down_bytes"].max(),
    }
    return pd.Series(most).astype(float) / 1e3


def queueing(result: cw.Result) -> pd.DataFrame:
    """Mean time in us that the packet which completes a flow queues at each hop."""
    hops = {"SrcToR": "queued_up_ps", "core": "queued_down_ps", "DstToR": "queued_last_ps"}
    frame = pd.DataFrame({hop: result.flows[column].astype(float) / 1e6 for hop, column in hops.items()})
    return frame.groupby(classes(result)).mean()


def table_of(results: Mapping[str, cw.Result], wanted: Iterable[str] = CLASSES) -> pd.DataFrame:
    """One row per run: mean and 99th percentile of each class."""
    rows = {}
    for name, result in results.items():
        stats = fct(result)
        rows[name] = {f"{group} {column}": stats.loc[group, column] for group in wanted for column in ("mean", "p99")}
    return pd.DataFrame(rows).T


def colour(name: str) -> str:
    """That of a pair's flow control, whatever is said of it behind a comma."""
    return COLOUR[name.rpartition(" + ")[2].partition(",")[0]]


def log_scale(axes: Axes, which: str) -> None:
    """A logarithmic axis with plain numbers; of y with room for the legend above all that share it."""
    axes.set(**{f"{which}scale": "log"})
    axis = axes.yaxis if which == "y" else axes.xaxis
    if which == "y":
        drawn = [
            sibling.dataLim
            for sibling in axes.get_shared_y_axes().get_siblings(axes)
            if np.isfinite(sibling.dataLim.y1)
        ]
        low, high = min(limits.minposy for limits in drawn) / 1.3, max(limits.y1 for limits in drawn)
        axes.set_ylim(low, high * (high / low) ** 0.4)
    else:
        low, high = axes.get_xlim()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 200 * low else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def bars(
    title: str, means: pd.DataFrame, tails: pd.DataFrame | None = None, *, y: str = "FCT (us)", log: bool = True
) -> Callable[[Axes], None]:
    """A group a row and a bar a column: deep the mean, light the 99th percentile, as the paper draws them."""

    def panel(axes: Axes) -> None:
        width = 0.8 / len(means.columns)
        taken: dict[str, int] = {}
        for index, name in enumerate(means.columns):
            places = np.arange(len(means)) + (index + 0.5) * width - 0.4
            # Pairs of one flow control are told apart by hatching.
            shade = colour(name)
            hatch = ("", "///", "...", "xxx")[taken.setdefault(shade, 0) % 4]
            taken[shade] += 1
            if tails is not None:
                axes.bar(places, tails[name], width * 0.92, color=shade, alpha=0.35, hatch=hatch, edgecolor="white")
            axes.bar(places, means[name], width * 0.92, color=shade, label=name, hatch=hatch, edgecolor="white")
        axes.set_xticks(range(len(means)), list(means.index))
        axes.set(title=title, ylabel=y)
        if log:
            log_scale(axes, "y")
        else:
            axes.set_ylim(0, axes.get_ylim()[1] * 1.3)
        short = all(len(name) < 20 for name in means.columns)
        axes.legend(fontsize=7 if short else 6, ncols=3 if len(means.columns) > 4 and short else 2, loc="upper left")

    return panel


def class_bars(title: str, table: pd.DataFrame, wanted: Sequence[str] = CLASSES) -> Callable[[Axes], None]:
    """Bars of a `table_of`."""
    means, tails = (
        pd.DataFrame(
            {name: [row[f"{group} {column}"] for group in wanted] for name, row in table.iterrows()}, index=list(wanted)
        )
        for column in ("mean", "p99")
    )
    return bars(title, means, tails)


def lines(
    title: str, table: pd.DataFrame, x: str, y: str, *, log_y: bool = True, log_x: bool = False
) -> Callable[[Axes], None]:
    """A line a column, by the index."""

    def panel(axes: Axes) -> None:
        for index, (name, values) in enumerate(table.items()):
            known = str(name).rpartition(" + ")[2] in COLOUR
            shade = colour(str(name)) if known else COLOURS[index]
            style = "--" if known and " + " in str(name) else "-"
            axes.plot(
                range(len(table)) if table.index.dtype == object else table.index,
                values,
                style,
                marker="o" if len(table) < 15 else "",
                color=shade,
                label=str(name),
            )
        if table.index.dtype == object:
            axes.set_xticks(range(len(table)), list(table.index), rotation=35, ha="right")
        if log_x:
            log_scale(axes, "x")
        if log_y:
            log_scale(axes, "y")
        else:
            axes.set_ylim(0, axes.get_ylim()[1] * 1.25)
        axes.set(xlabel=x, ylabel=y, title=title)
        axes.legend(fontsize=7, ncols=2, loc="upper left" if log_y else "upper right")

    return panel
