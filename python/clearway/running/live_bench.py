"""`clearway live --bench`: how fast this machine runs scenarios by its clock, as tables and a picture."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from clearway import _core
from clearway.cli.said import Said
from clearway.files.places import check_folder
from clearway.files.whole import replace
from clearway.reports.plots import STYLE, Picture
from clearway.running.part import PART

AWAY = (
    "away_percent: how much of the time other programs, or other virtual machines, had the workers' cores; "
    "machine_p99_ns, machine_stopped_percent: of as many threads that only read the clock; "
    "word_ns: until a thread sees what another has written"
)
TITLES = {
    "throughput": "one flow over two hops: Gbps",
    "latency": "a hop: a small packet's departure until the next node sees it",
    "sharing": "flows over links of their own, on one worker",
    "hops": "packet-hops a second, 1,500 B",
    "trunk": "one flow between two machines, both of which are this one: Gbps",
}

# R2C2, section 4.1.
PAPER_BYTES, PAPER_GBPS, PAPER_HOP_NS = 8192, 38.0, 3000.0

LIVE, OTHER, PAPER = "#2f6fb0", "#8fb8de", "#c0392b"


def bench(said: Said, folder: Path) -> None:
    """The micro-benchmarks of Maze (R2C2, section 4.1) on this machine."""
    check_folder(folder)
    report = json.loads(_core.live_bench(PART))
    said.facts({"cores": report["cores"]})
    for name, title in TITLES.items():
        said.line(title, {})
        frame = pd.DataFrame(report[name])
        said.table(frame.set_index(frame.columns[0]), name)
    said.line(AWAY, {})
    place = folder / "bench.png"
    with mpl.rc_context(STYLE):
        replace(place, partial(picture(report).savefig, format="png", dpi=150))
    said.place("picture", place)
    said.end()


def picture(report: dict[str, Any]) -> Picture:
    """The lines of a report, beside the paper's numbers."""
    with mpl.rc_context(STYLE):
        drawn = Picture(figsize=(9.6, 6.6), layout="constrained")
        panels = drawn.subplots(2, 2).flat
        for axes, draw, name in zip(panels, (_throughput, _latency, _sharing, _hops), TITLES):
            draw(axes, report[name])
            away = [row["away_percent"] for row in report[name]]
            axes.set_title(f"{TITLES[name]}\ncores taken away for {min(away):.0f} to {max(away):.0f}% of the time")
            if axes.get_legend_handles_labels()[0]:
                axes.legend(fontsize=8)
    return drawn


def _throughput(axes: Axes, rows: list[dict[str, Any]]) -> None:
    sizes = [row["packet_bytes"] for row in rows]
    axes.plot(sizes, [row["most_gbps"] for row in rows], "o-", color=LIVE, label="links faster than the machine")
    axes.plot(sizes, [row["at_40_gbps"] for row in rows], "s--", color=OTHER, label="links of 40 Gbps")
    axes.plot([PAPER_BYTES], [PAPER_GBPS], "*", color=PAPER, markersize=10, label="paper, links of 40 Gbps")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=30)
    axes.set_ylim(0, 1.15 * max(PAPER_GBPS, *(row["most_gbps"] for row in rows)))
    axes.set(xlabel="packet, B", ylabel="Gbps")


def _latency(axes: Axes, rows: list[dict[str, Any]]) -> None:
    places = range(len(rows))
    for shift, name, colour in ((-0.2, "median", LIVE), (0.2, "p99", OTHER)):
        axes.bar(
            [at + shift for at in places], [row[f"{name}_ns"] / 1e3 for row in rows], 0.38, color=colour, label=name
        )
    machine = [row["machine_p99_ns"] / 1e3 for row in rows]
    axes.plot([at + 0.2 for at in places], machine, "_", color=PAPER, markersize=24, label="p99 of an idle thread")
    axes.axhline(PAPER_HOP_NS / 1e3, color=PAPER, linestyle=":", label="paper")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.7g}"))
    # Room for the legend above the bars, whatever they are.
    axes.set_ylim(top=200 * max(row["p99_ns"] for row in rows) / 1e3)
    axes.set_xticks(list(places), [_where(row) for row in rows])
    axes.set_ylabel("us")


def _sharing(axes: Axes, rows: list[dict[str, Any]]) -> None:
    flows = [row["flows"] for row in rows]
    axes.plot(flows, [row["gbps"] for row in rows], "o-", color=LIVE, label="all together")
    axes.axhline(32, color="#8a8f98", linestyle=":", label="their links")
    axes.set_xscale("log", base=2)
    axes.set_xticks(flows, [str(count) for count in flows])
    axes.set_ylim(0, 40)
    axes.set(xlabel="flows", ylabel="Gbps")


def _hops(axes: Axes, rows: list[dict[str, Any]]) -> None:
    axes.bar([_where(row) for row in rows], [row["million_per_second"] for row in rows], 0.5, color=LIVE)
    axes.set_ylabel("millions")


def _where(row: dict[str, Any]) -> str:
    """Where a row's workers were."""
    if row["processes"] > 1:
        return f"{row['processes']} processes"
    return "1 worker" if row["workers"] == 1 else f"{row['workers']} workers"
