"""The report on a sweep: its results along its axes. The x axis is the load, or else the axis of numbers with the
most values; a line is a transport, or else what has the most values of the rest; what is left are filters, and seeds
are averaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from clearway.comparisons.comparison import without_ends
from clearway.defaults import KEEPS_UP
from clearway.reports import html
from clearway.reports.charts import Charts
from clearway.reports.lines import BANDS, CSS, Axes, Lines, Panel, numeric, said, script
from clearway.results.advice import lines_of
from clearway.results.confidence import of_seeds

if TYPE_CHECKING:
    from clearway.sweeps.result import SweepResult

SLOWDOWN = {
    "short mean": "short flows: mean", "short p99": "short flows: 99th percentile",
    "medium mean": "medium flows: mean", "medium p99": "medium flows: 99th percentile",
    "long mean": "long flows: mean", "long p99": "long flows: 99th percentile",
}  # fmt: skip
NETWORK = {"goodput Gbps": "goodput (Gbit/s)", "kept up": "delivered, of what arrived", "dropped": "packets lost"}
SHOWN = [*SLOWDOWN, "goodput Gbps", "kept up", "unfinished", "dropped"]
COUNTS = ("unfinished", "dropped")


def _axes(table: pd.DataFrame, axes: Sequence[str]) -> Axes | None:
    """How each axis is drawn; None if nothing varies but the seed."""
    left = [axis for axis in axes if axis != "seed" and table[axis].nunique() > 1]
    count = {axis: table[axis].nunique() for axis in left}
    numbers = [axis for axis in left if numeric(table[axis])]
    x = "load" if "load" in numbers else max(numbers, key=count.__getitem__, default=None)
    left = [axis for axis in left if axis != x]
    first = [axis for axis in ("transport", "flow_control", "scenario") if axis in left]
    line = first[0] if first else max(left, key=count.__getitem__, default=None)
    left = [axis for axis in left if axis != line]
    if x is None and line is not None:
        # No axis has numbers: the words of one axis are drawn side by side.
        x, line = (left.pop(0), line) if left else (line, None)
    return None if x is None else Axes(x, line, left)


def write(result: SweepResult, path: Path) -> Path:
    """Writes the page."""
    table = result.table()
    done = table[table["status"].isin(["done", "audit"])]
    axes, charts = _axes(done, result.axes), Charts()
    parts = [f"<h1>{escape(result.name)}</h1>", _subtitle(result, table), _warnings(result)]
    if axes is not None and set(SHOWN) <= set(done.columns):
        parts += _figures(done, axes, charts)
    parts += [
        html.section("All combinations", _combinations(done, result.axes)),
        html.section("Failed", _errors(result.failed)),
        html.section("Audit", _errors(result.troubles)),
        html.section("How it was run", _runs(done)),
        html.section("Scenario", _scenario(result)),
    ]
    drawn = charts.script()
    return html.write(result.name, [*parts, *([script(), drawn] if drawn else [])], path, CSS)


def _subtitle(result: SweepResult, table: pd.DataFrame) -> str:
    lines = []
    for axis in result.axes:
        values = list(dict.fromkeys(table[axis].dropna()))
        words = [said(value) for value in values]
        shown = ", ".join(words) if len(words) <= 8 else f"{words[0]}, {words[1]}, ... {words[-1]}"
        lines.append(f"{axis} {shown}")
    return f"<p class=subtitle>{escape(f'{len(table):,} runs: ' + '; '.join(lines))}</p>"


def _warnings(result: SweepResult) -> str:
    states = list(result.status.values())
    counts = {"failed": "failed", "audit": "failed their audit", "missing": "have not been run"}
    said = [
        f"{states.count(state):,} of {len(states):,} runs {words}."
        for state, words in counts.items()
        if state in states
    ]
    said += [escape(line) for line in lines_of(result.warnings, len(states))]
    said += [escape(str(one)) for one in result.unchanged]
    return f"<div class=warning>{'<br>'.join(said)}</div>" if said else ""


def _figures(done: pd.DataFrame, axes: Axes, charts: Charts) -> Iterator[str]:
    """The charts along the axes, under one set of filters."""
    across = f"against {axes.x}" + (f", by {axes.line}" if axes.line else "")
    apart = [axis for axis in axes.filters if done[axis].nunique() > 1]
    band = f"and up to {BANDS} lines have a band from the lowest to the highest"
    seeds = f"A line goes through the mean of all seeds, {band}. " if "seed" in done else ""
    slowdown = (
        "Slowdown is a flow's completion time over the time that it takes alone in the same network; short flows have "
        f"up to 1 bandwidth-delay product, medium ones up to 8, long ones more. {seeds}If a point is hollow, some "
        "flows did not complete: they have no slowdown, so the worst are missing. Click a point to see its runs."
    )
    network = (
        "Goodput is delivered payload from the first start to the last delivery. Next to it is the share of arriving "
        "bytes that was delivered in the second half of the arrival time, from the growth of unfinished work: a load "
        f"is sustained if it stays above the dashed line, {KEEPS_UP:.0%}, with traffic that lasts until the work in "
        "progress has settled. A shorter run falls below the line at any load."
    )
    lines = Lines(charts, done.reset_index(names="run"), Axes(axes.x, axes.line, apart), "sweep")
    labels = [
        name
        for name in ("seed", *axes.filters, axes.line or axes.x, axes.x)
        if name in done and done[name].nunique() > 1
    ]
    shown = {name: name for name in ("run", *reversed(labels), *SHOWN, "digest", "key") if name in {"run", *done}}
    of_sizes = [Panel(title, column) for column, title in SLOWDOWN.items()]
    of_network = [
        Panel(title, column, slowdown=False, line=KEEPS_UP if column == "kept up" else None)
        for column, title in NETWORK.items()
    ]
    yield html.section(f"Slowdown {across}", lines.filters() + lines.row(of_sizes, slowdown))
    yield html.section(f"Network {across}", lines.row(of_network, network) + lines.end(shown))


def _combinations(done: pd.DataFrame, axes: Sequence[str]) -> str:
    """One row for each combination of labels other than the seed; means over seeds."""
    keys = [axis for axis in axes if axis != "seed"]
    numbers = [column for column in SHOWN if column in done] or [
        column
        for column in without_ends(done).columns
        if column not in axes and pd.api.types.is_numeric_dtype(done[column])
    ]
    rows = []
    for group in _groups(done, keys):
        names = [said(group[key].iloc[0]) for key in keys]
        rows.append([*names, f"{len(group)}", *(_mean(group, column) for column in numbers)])
    if not rows:
        return "<p>Nothing has been run.</p>"
    note = (
        "Slowdown of completed flows, and network measurements: means over seeds. " if "short mean" in numbers else ""
    )
    note = (
        f"<p class=note>{note}In brackets: 95% t-intervals over seeds if there are several; otherwise 95% of "
        "resamplings of the run's flows, which says nothing of other seeds.</p>"
    )
    return html.table([*keys, "runs", *numbers], rows, text=len(keys)) + note


def _mean(group: pd.DataFrame, column: str) -> str:
    """The mean over seeds with its interval; for a single run, the run's own interval."""
    values = group[column].astype(float).dropna().to_numpy()
    mean = float(values.mean()) if len(values) else float("nan")

    def shown(value: float) -> str:
        return f"{value:,.0f}" if column in COUNTS else html.number(value)

    ends = of_seeds(values)
    if len(group) == 1 and f"{column} low" in group:
        ends = float(group[f"{column} low"].iloc[0]), float(group[f"{column} high"].iloc[0])
    return shown(mean) if np.isnan(ends).any() else f"{shown(mean)} ({shown(ends[0])}–{shown(ends[1])})"


def _errors(errors: dict[str, str]) -> str:
    return "".join(f"<h3>{escape(name)}</h3><pre>{escape(error)}</pre>" for name, error in errors.items())


def _runs(done: pd.DataFrame) -> str:
    if "digest" not in done or not len(done):
        return ""
    hops, wall = done["packet hops"].sum(), done["wall seconds"].sum()
    rows = [
        [name, digest, key, f"{took:,.1f} s"]
        for name, digest, key, took in zip(done.index, done["digest"], done["key"], done["wall seconds"], strict=True)
    ]
    table = html.table(["", "digest", "key in the store", "took"], rows, text=3)
    said = f"{hops:,.0f} packet-hops in {wall:,.0f} s of single runs."
    return f"<p>{said}</p><details><summary>Each run</summary>{table}</details>"


def _scenario(result: SweepResult) -> str:
    first = next(((point, of) for point, of in result.results()), None)
    if first is None:
        return ""
    point, of = first
    said = f"<summary>{escape(point.name)}, every default filled in</summary><pre>{escape(of.scenario_toml)}</pre>"
    return f"<details>{said}</details>"


def _groups(table: pd.DataFrame, keys: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Groups of rows that agree in some columns, in the order of their first row."""
    if not keys:
        yield table
        return
    for _, group in table.groupby(list(keys), sort=False, dropna=False):
        yield group
