"""How the figures of dcPIM's paper are drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from clearway.papers.figures import draw

from .setting import COLOURS, DRIFTS_PPM, PAPER, WORKLOADS


def log_axis(axes: Axes) -> None:
    """Slowdowns on a logarithmic axis, with ticks that people read."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def bars(axes: Axes, values: pd.Series[float], title: str, log: bool = False) -> None:
    """One bar per scheme, with its number."""
    colours = [COLOURS.get(str(name), "#8a8f98") for name in values.index]
    axes.bar(range(len(values)), values.to_numpy(dtype=float), 0.7, color=colours)
    axes.set_xticks(range(len(values)), [str(name).replace(" ", "\n") for name in values.index], fontsize=7.5)
    for x, value in enumerate(values):
        axes.annotate(f"{value:.3g}", (x, value), (0, 2), textcoords="offset points", ha="center", fontsize=7.5)
    axes.set_title(title)
    axes.grid(axis="x", visible=False)
    axes.margins(y=0.12)
    if log:
        log_axis(axes)


def by_size(table: pd.DataFrame, marks: Mapping[tuple[str, str], Mapping[str, float]] | None = None) -> Any:
    """Mean and 99th percentile by size, a row a workload; what was published as a line across the bar."""
    sizes = [column.removesuffix(" mean") for column in table.columns if column.endswith(" mean")]

    def panel(axes: Axes, workload: str, statistic: str) -> None:
        schemes = list(dict.fromkeys(table.index.get_level_values("scheme")))
        width = 0.86 / len(schemes)
        for place, scheme in enumerate(schemes):
            values = [float(table.loc[(workload, scheme), f"{size} {statistic}"]) for size in sizes]
            at = np.arange(len(sizes)) + (place - (len(schemes) - 1) / 2) * width
            axes.bar(at, values, width * 0.92, color=COLOURS[scheme], label=scheme)
            said = (marks or {}).get((workload, scheme), {})
            lines = [(x, said[f"{size} {statistic}"]) for x, size in zip(at, sizes) if f"{size} {statistic}" in said]
            label = "published" if place == 0 else ""
            axes.hlines(
                [y for _, y in lines],
                [x - width / 2 for x, _ in lines],
                [x + width / 2 for x, _ in lines],
                color="black",
                linewidth=1.6,
                label=label,
            )
        log_axis(axes)
        axes.set_ylim(bottom=0.9)
        axes.set_xticks(
            range(len(sizes)), [size.replace(" BDP", "").replace(" to ", "-") for size in sizes], fontsize=8
        )
        axes.set_title(f"{workload}: {'mean' if statistic == 'mean' else '99th percentile'}")
        axes.set_ylabel("slowdown")
        axes.grid(axis="x", visible=False)
        if workload == "IMC10" and statistic == "mean":
            low, high = axes.get_ylim()
            axes.set_ylim(top=high * (high / low) ** 0.45)
            axes.legend(fontsize=6.5, ncols=2)

    cells = [(workload, statistic) for workload in WORKLOADS.values() for statistic in ("mean", "p99")]
    return draw([partial(panel, workload=workload, statistic=statistic) for workload, statistic in cells], columns=2)


def loads(axes: Axes, rows: pd.DataFrame, title: str) -> None:
    """Sustained loads with their confidence, and the paper's as a line across the bar."""
    bars(axes, rows["sustained"], title)
    axes.errorbar(range(len(rows)), rows["sustained"], rows["+-"].fillna(0.0), fmt="none", color="black", capsize=3)
    for x, said in enumerate(rows["paper"]):
        if not math.isnan(said):
            axes.hlines(said, x - 0.35, x + 0.35, color="black", linewidth=1.6)


def beside(axes: Axes, rows: pd.DataFrame, title: str) -> None:
    """Ours and the paper's over load."""
    for ours, theirs, colour in (("mean", "paper's", "#0072b2"), ("p99", "paper's p99", "#d55e00")):
        axes.plot(rows.index, rows[ours], marker="o", color=colour, label=ours)
        axes.plot(
            rows.index,
            rows[theirs],
            marker="_",
            markersize=12,
            linestyle="none",
            color="black",
            label="published" if ours == "mean" else None,
        )
    log_axis(axes)
    axes.set(xlabel="load", ylabel="slowdown")
    axes.set_title(title)
    axes.legend(fontsize=7)


def over_offsets(axes: Axes, table: pd.DataFrame, column: str) -> None:
    """A line a drift, over how far clocks are apart."""
    for drift, colour in zip(DRIFTS_PPM, ("#0072b2", "#009e73", "#d55e00")):
        rows = table.loc[drift]
        axes.plot(
            [f"{offset:g}" for offset in rows.index],
            rows[column].astype(float),
            marker="o",
            color=colour,
            label=f"drift to {drift} ppm",
        )
    axes.set(xlabel="offset up to (us)", ylabel="slowdown")
    axes.set_ylim(bottom=1.0)
    axes.set_title(column)
    axes.legend(fontsize=7)


def grid(axes: Axes, cells: pd.DataFrame, title: str) -> None:
    """Rounds down, channels across, a number a cell."""
    axes.imshow(cells.to_numpy(float), cmap="Blues", vmin=40, vmax=100, aspect="auto")
    for (y, x), value in np.ndenumerate(cells.to_numpy(float)):
        axes.text(x, y, f"{value:.0f}", ha="center", va="center", fontsize=9)
    axes.set_xticks(range(len(cells.columns)), [f"k={k}" for k in cells.columns])
    axes.set_yticks(range(len(cells)), [f"r={r}" for r in cells.index])
    axes.grid(visible=False)
    axes.set_title(f"sustained load, %: {title}")


def over_time(axes: Axes, used: Mapping[str, pd.Series[float]], title: str) -> None:
    """One line per scheme: the share of capacity that data takes."""
    for scheme, values in used.items():
        axes.plot(
            values.index,
            values,
            color=COLOURS.get(scheme, "black"),
            label=scheme,
            linestyle="-" if scheme in PAPER else (0, (4, 2)),
            linewidth=1.3,
        )
    axes.set(xlabel="time (us)", ylabel="share of capacity", ylim=(0, 1.05))
    axes.set_title(title)
    axes.legend(fontsize=7, ncols=2)


def sensitivity(axes: Axes, rows: pd.DataFrame, key: str) -> None:
    """Slowdowns over a parameter."""
    for column, colour in (
        ("all mean", "#0072b2"),
        ("short mean", "#009e73"),
        ("all p99", "#d55e00"),
        ("short p99", "#e69f00"),
    ):
        axes.plot(rows.index, rows[column].astype(float), marker="o", color=colour, label=column)
    log_axis(axes)
    axes.set_title(key)
    axes.set_ylabel("slowdown")
    axes.legend(fontsize=7)


def matched(axes: Axes, rows: pd.DataFrame, title: str) -> None:
    """The share of hosts that are matched over rounds, by the number of hosts, and the bound for the most."""
    for shade, (hosts, of) in zip(("#0072b2", "#009e73", "#d55e00", "#cc79a7"), rows.groupby(level="hosts")):
        of = of.droplevel("hosts")
        axes.plot(of.index, of["matched"], marker="o", markersize=3, color=shade, label=f"{hosts:,} hosts")
    axes.plot(of.index, of["bound"], linestyle=":", color="black", label="Theorem 1")
    axes.set(xlabel="rounds", ylabel="hosts matched", ylim=(0, 1))
    axes.set_title(title)
    axes.legend(fontsize=7)
