"""Shared by the figures of Harmony's paper: runs and searches of its setting, and how slowdowns and regions are
told and drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import clearway as cw
from clearway.papers import figures
from clearway.papers.figures import Keys, draw
from clearway.reports.looks import COLOURS

__all__ = ["draw"]

HERE = Path(__file__).parent
OUT = Path("out/harmony")

# Messages arrive for this many times as long as by default.
scale = 1.0
# In which order links serve virtual links: "fifo" or "round_robin".
service: Literal["fifo", "round_robin"] = "fifo"
# Which active message gets an additional slot: "oldest" or "fewest", the one that has the fewest slots.
additional_to: Literal["oldest", "fewest"] = "oldest"

# Section 5; the testbed's packets take ten times as long, and so does all that is waited for.
K, DELTA_US = 8, 63
SPREAD = ["min", "mean", "p99", "p99.9", "max"]


def reserving(scheme: str, *, k: int = K, delta_us: float = DELTA_US, **more: Any) -> dict[str, Any]:
    """A scheme that reserves, and traffic that is admissible in every delta_admission, as section 5 has it."""
    delta = f"{delta_us:g}us"
    settings: dict[str, Any] = {"delta_admission": delta, **more}
    if scheme == "harmony":
        settings = {"slots": k, **in_service(), **settings}
    return {"transport": {scheme: settings}, "traffic.0.admissible": delta}


def in_service() -> dict[str, Any]:
    """Harmony's order of service and of additional slots, where they are not the default."""
    of_links = {} if service == "fifo" else {"service": service}
    return of_links if additional_to == "oldest" else {**of_links, "additional_to": additional_to}


def named(name: str) -> str:
    """The name of a run in these settings."""
    return name + ("" if service == "fifo" else " in turn") + ("" if additional_to == "oldest" else " to the fewest")


def lasting(us: float) -> dict[str, Any]:
    """For how long messages arrive."""
    return {"traffic.0.duration": f"{us * scale:g}us"}


def run(scenario: str, name: str, sets: Keys) -> cw.Result:
    """A scenario with some keys set; it is an error if the audit finds anything."""
    return figures.run(HERE / f"{scenario}.toml", named(name), sets, OUT, threads_of(scenario))


def threads_of(scenario: str) -> int | None:
    """Eight hosts are too few to share among threads."""
    return 1 if scenario == "testbed" else None


def sustain(scenario: str, name: str, sets: Keys, seeds: Sequence[int] = (1, 2), **search: Any) -> cw.Sustained:
    """The maximum sustainable load as the paper has it, where every message completes; an error if the audit of any
    run finds anything."""
    wanted = cw.Scenario.load(HERE / f"{scenario}.toml").with_({"name": f"{scenario} {named(name)}", **sets})
    return figures.sustain(wanted, OUT, seeds=seeds, keeps_up=None, threads=threads_of(scenario), **search)


def spread(result: cw.Result, wanted: str = "rpcs", column: str = "slowdown") -> pd.Series[float]:
    """{minimum, mean, 99%-ile, 99.9%-ile, maximum} of a class: the paper's slowdown spread."""
    values = result.flows[column][result.flows["class"] == wanted].astype(float)
    values = values[~np.isnan(values)]
    numbers = [values.min(), values.mean(), *np.quantile(values, [0.99, 0.999]), values.max()]
    return pd.Series(dict(zip(SPREAD, numbers)))


def rejected(result: cw.Result) -> int:
    return int((result.flows["status"] == "rejected").sum())


def interval(hits: int, of: int) -> tuple[float, float]:
    """The share of hits, with 95% confidence (Wilson)."""
    z, n = 1.96, max(of, 1)
    share = hits / n
    middle, half = (
        (share + z * z / (2 * n)) / (1 + z * z / n),
        z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n),
    )
    return max(middle - half, 0.0), min(middle + half, 1.0)


def waits_us(result: cw.Result) -> pd.Series[float]:
    """The longest that a packet waited in all switches together, and the bound."""
    table = result.tables["guaranteed_waits"].to_arrow().to_pandas()
    return pd.Series({"wait max": table["wait_ps"].max() / 1e6, "wait bound": table["wait_bound_ps"].max() / 1e6})


def envelope(points: pd.DataFrame, target: str, load: str = "load") -> pd.DataFrame:
    """The feasibility region's edge: of points that hold, those that no other beats in both."""
    rows, best = [], -np.inf
    for _, row in points.sort_values([target, load], ascending=[True, False]).iterrows():
        if row[load] > best:
            best = row[load]
            rows.append(row)
    return pd.DataFrame(rows)


def reached(edge: pd.DataFrame, target: str, limit: float) -> float:
    """The highest load within a limit."""
    within = edge[edge[target] <= limit]["load"]
    return float(within.max()) if len(within) else 0.0


def regions(
    title: str, edges: Mapping[str, pd.DataFrame], target: str, x: str, bound: float | None = None
) -> Callable[[Axes], None]:
    """Feasibility regions: below each step the loads that are sustained within the target."""

    def panel(axes: Axes) -> None:
        right = max(edge[target].max() for edge in edges.values()) * 1.1
        for colour, (name, edge) in zip(COLOURS, edges.items()):
            targets, loads = [*edge[target], right], [*edge["load"], edge["load"].iloc[-1]]
            axes.step(targets, loads, where="post", color=colour, label=name)
            axes.fill_between(targets, loads, step="post", color=colour, alpha=0.12, linewidth=0)
        if bound is not None:
            axes.axvline(bound, color="#009e73", linestyle=":", label="bound, K = 8")
        axes.set(title=title, xlabel=x, ylabel="sustained load", ylim=(0, 1), xlim=(0, None))
        axes.legend(fontsize=7, loc="lower right")

    return panel


def whiskers(
    title: str, spreads: Mapping[str, pd.Series[float]], y: str, bound: float | None = None
) -> Callable[[Axes], None]:
    """Spreads as the paper draws them: a box from mean to 99.9%-ile with the 99%-ile as its line, whiskers to
    minimum and maximum."""

    def panel(axes: Axes) -> None:
        boxes = [
            {
                "label": name,
                "whislo": of["min"],
                "q1": of["mean"],
                "med": of["p99"],
                "q3": of["p99.9"],
                "whishi": of["max"],
            }
            for name, of in spreads.items()
        ]
        drawn = axes.bxp(boxes, showfliers=False, patch_artist=True, widths=0.5, medianprops={"color": "#1d2025"})
        for colour, box in zip([*COLOURS] * len(boxes), drawn["boxes"]):
            box.set(facecolor=colour, alpha=0.6)
        if bound is not None:
            axes.axhline(bound, color="#009e73", linestyle=":", label="bound")
            axes.legend(fontsize=7)
        # Panels may share their axis: the tallest sets it.
        axes.set(
            title=title, ylabel=y, ylim=(0, max(axes.get_ylim()[1], 1.05 * max(of["max"] for of in spreads.values())))
        )
        axes.tick_params(axis="x", labelrotation=0 if sum(map(len, spreads)) < 40 else 20)

    return panel


def lines(
    title: str, table: pd.DataFrame, x: str, y: str, *, log_x: bool = False, top: float | None = None
) -> Callable[[Axes], None]:
    """A line a column, by the index."""

    def panel(axes: Axes) -> None:
        for colour, (name, values) in zip(COLOURS, table.items()):
            axes.plot(table.index, values, marker="o", color=colour, label=str(name))
        if log_x:
            axes.set_xscale("log", base=2)
            axes.set_xticks(list(table.index), [f"{value:g}" for value in table.index])
        axes.set(title=title, xlabel=x, ylabel=y, ylim=(0, top))
        axes.legend(fontsize=7)

    return panel


def bars(title: str, table: pd.DataFrame, y: str, *, stacked: bool = False) -> Callable[[Axes], None]:
    """A group a row and a bar a column, or with `stacked` a bar a row."""

    def panel(axes: Axes) -> None:
        bottom = np.zeros(len(table))
        width = 0.6 if stacked else 0.8 / len(table.columns)
        for index, (name, values) in enumerate(table.items()):
            places = np.arange(len(table)) + (0 if stacked else (index + 0.5) * width - 0.4)
            heights = values.to_numpy(float)
            axes.bar(places, heights, width * 0.94, bottom=bottom, color=COLOURS[index % len(COLOURS)], label=str(name))
            if stacked:
                bottom = bottom + heights
        axes.set_xticks(range(len(table)), [str(name) for name in table.index], fontsize=8)
        axes.set(title=title, ylabel=y, ylim=(0, axes.get_ylim()[1] * 1.3))
        axes.legend(fontsize=7, ncols=2, loc="upper left")

    return panel


def table_of(rows: Mapping[Any, pd.Series[float]], names: str | Iterable[str]) -> pd.DataFrame:
    table = pd.DataFrame(rows).T
    return table.rename_axis(names if isinstance(names, str) else list(names))
