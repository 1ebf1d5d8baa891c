"""The report on a sweep: its results along its axes. The x axis is the load, or else the axis of numbers with the
most values; a line is a transport, or else what has the most values of the rest; what is left tells figures apart, and
seeds are averaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from clearway import _html
from clearway._confidence import of_mean
from clearway._defaults import KEEPS_UP
from clearway._plots import COLOURS, STYLE, Picture, add_legend, colours_of, labelled
from clearway._run import without_ends

if TYPE_CHECKING:
    from clearway._sweep.result import SweepResult

# If the remaining axes need more figures than this, the rest is folded away.
OPEN = 3
# With more lines the bands would hide each other.
BANDS = 6
SLOWDOWN = {
    "short mean": "short flows: mean", "short p99": "short flows: 99th percentile",
    "medium mean": "medium flows: mean", "medium p99": "medium flows: 99th percentile",
    "long mean": "long flows: mean", "long p99": "long flows: 99th percentile",
}  # fmt: skip
NETWORK = {"goodput Gbps": "goodput (Gbit/s)", "kept up": "delivered, of what arrived", "dropped": "packets lost"}
SHOWN = [*SLOWDOWN, "goodput Gbps", "kept up", "unfinished", "dropped"]
COUNTS = ("unfinished", "dropped")
DASHES = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 1.5, 1, 1.5)))


@dataclass(frozen=True)
class _Roles:
    """How each axis is drawn."""

    x: str | None
    line: str | None
    figures: list[str]

    @staticmethod
    def of(table: pd.DataFrame, axes: Sequence[str]) -> _Roles:
        left = [axis for axis in axes if axis != "seed" and table[axis].nunique() > 1]
        count = {axis: table[axis].nunique() for axis in left}
        numbers = [axis for axis in left if _numeric(table[axis])]
        x = "load" if "load" in numbers else max(numbers, key=count.__getitem__, default=None)
        left = [axis for axis in left if axis != x]
        first = [axis for axis in ("transport", "flow_control", "scenario") if axis in left]
        line = first[0] if first else max(left, key=count.__getitem__, default=None)
        left = [axis for axis in left if axis != line]
        if x is None and line is not None:
            # No axis has numbers: the words of one axis are drawn side by side.
            x, line = (left.pop(0), line) if left else (line, None)
        return _Roles(x, line, left)


def write(result: SweepResult, path: Path) -> Path:
    """Writes the page."""
    table = result.table()
    done = table[table["status"].isin(["done", "audit"])]
    roles = _Roles.of(done, result.axes)
    parts = [f"<h1>{escape(result.name)}</h1>", _subtitle(result, table), _warnings(result)]
    if len(done) and set(SHOWN) <= set(done.columns):
        parts += _figures(done, roles)
    parts += [
        _html.section("All combinations", _combinations(done, result.axes)),
        _html.section("Failed", _errors(result.failed)),
        _html.section("Audit", _errors(result.troubles)),
        _html.section("How it was run", _runs(done)),
        _html.section("Scenario", _scenario(result)),
    ]
    return _html.write(result.name, parts, path)


def _subtitle(result: SweepResult, table: pd.DataFrame) -> str:
    said = []
    for axis in result.axes:
        values = list(dict.fromkeys(table[axis].dropna()))
        words = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
        shown = ", ".join(words) if len(words) <= 8 else f"{words[0]}, {words[1]}, ... {words[-1]}"
        said.append(f"{axis} {shown}")
    return f"<p class=subtitle>{escape(f'{len(table):,} runs: ' + '; '.join(said))}</p>"


def _warnings(result: SweepResult) -> str:
    states = list(result.status.values())
    counts = {"failed": "failed", "audit": "failed their audit", "missing": "have not been run"}
    said = [
        f"{states.count(state):,} of {len(states):,} runs {words}."
        for state, words in counts.items()
        if state in states
    ]
    return f"<div class=warning>{'<br>'.join(said)}</div>" if said else ""


def _figures(done: pd.DataFrame, roles: _Roles) -> Iterator[str]:
    if roles.x is None:
        return
    across = f"against {roles.x}" + (f", by {roles.line}" if roles.line else "")
    band = (
        ", with a band from the lowest to the highest"
        if roles.line is None or done[roles.line].nunique() <= BANDS
        else ""
    )
    seeds = f"A line goes through the mean of all seeds{band}. " if "seed" in done else ""
    slowdown = (
        "Slowdown is a flow's completion time over the time that it takes alone in the same network; short flows have "
        f"up to 1 bandwidth-delay product, long ones more than 8. {seeds}If a circle is hollow, some flows did not "
        "complete: they have no slowdown, so the worst are missing."
    )
    network = (
        "Goodput is delivered payload from the first start to the last delivery. Next to it is the share of arriving "
        "bytes that was delivered in the second half of the arrival time, from the growth of unfinished work: a load "
        f"is sustained if it stays above the dashed line, {KEEPS_UP:.0%}, with traffic that lasts until the work in "
        "progress has settled. A shorter run falls below the line at any load."
    )
    for title, columns, caption in (("Slowdown", SLOWDOWN, slowdown), ("Network", NETWORK, network)):
        body = ""
        for number, (names, group) in enumerate(_groups(done, roles.figures)):
            picture = _html.figure(_picture(group, done, roles, columns), caption if number == 0 else "")
            if names:
                fold = f"<details{' open' if number < OPEN else ''}>"
                picture = f"{fold}<summary>{escape(', '.join(names))}</summary>{picture}</details>"
            body += picture
        yield _html.section(f"{title} {across}", body)


def _picture(group: pd.DataFrame, done: pd.DataFrame, roles: _Roles, columns: dict[str, str]) -> Picture:
    """A panel a column; all figures of a report have the same lines and the same x axis."""
    assert roles.x is not None
    lines = list(dict.fromkeys(done[roles.line])) if roles.line else [None]
    colours = colours_of([str(line) for line in lines])
    ticks = sorted(set(done[roles.x])) if _numeric(done[roles.x]) else list(dict.fromkeys(done[roles.x]))
    rows = len(columns) // 2 if columns is SLOWDOWN else 1
    with mpl.rc_context(STYLE):
        picture = Picture(figsize=(9.6, 2.6 * rows + 0.5), layout="constrained")
        panels = picture.subplots(
            rows, -(-len(columns) // rows), sharex=True, sharey="row" if columns is SLOWDOWN else False
        )
        for axes, (column, title) in zip(np.ravel(panels), columns.items(), strict=True):
            for number, (line, colour) in enumerate(zip(lines, colours, strict=True)):
                of_line = group if roles.line is None else group[group[roles.line] == line]
                dashes = DASHES[number // len(COLOURS) % len(DASHES)]
                _line(axes, of_line, roles.x, column, ticks, colour, dashes, str(line), len(lines) <= BANDS)
            _dress(axes, column, title, roles.x, ticks)
        for axes in np.ravel(panels)[: -(len(columns) // rows)]:
            axes.set_xlabel("")
        if roles.line is not None:
            add_legend(picture, np.ravel(panels)[0], loc="outside upper center", ncols=min(len(lines), 7))
        return picture


def _line(
    axes: Axes,
    runs: pd.DataFrame,
    x: str,
    column: str,
    ticks: Sequence[Any],
    colour: str,
    dashes: Any,
    name: str,
    band: bool,
) -> None:
    values = runs[column].astype(float).groupby(runs[x])
    mean, least, most = values.mean(), values.min(), values.max()
    numeric = _numeric(pd.Series(ticks))
    order = [tick for tick in ticks if tick in mean.index]
    at = np.array(order, dtype=float) if numeric else np.array([ticks.index(tick) for tick in order], dtype=float)
    axes.plot(at, mean[order], color=colour, linestyle=dashes, label=labelled(name), marker="o")
    if band and (most > least).any():
        axes.fill_between(at, least[order], most[order], color=colour, alpha=0.15, linewidth=0)
    left = (runs["unfinished"].groupby(runs[x]).sum() > 0)[order].to_numpy()
    axes.plot(at[left], mean[order][left], linestyle="none", marker="o", markerfacecolor="white", color=colour)


def _dress(axes: Axes, column: str, title: str, x: str, ticks: Sequence[Any]) -> None:
    axes.set_title(title)
    axes.set_xlabel(x)
    if not _numeric(pd.Series(ticks)):
        axes.set_xticks(range(len(ticks)), [str(tick) for tick in ticks])
        axes.margins(x=0.1)
    elif ticks[0] > 0 and ticks[-1] / ticks[0] >= 16:
        axes.set_xscale("log")
        axes.set_xticks(list(ticks) if len(ticks) <= 10 else [ticks[0], ticks[-1]])
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    if column in SLOWDOWN:
        axes.set_yscale("log")
        axes.axhline(2, alpha=0)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif column == "kept up":
        axes.axhline(KEEPS_UP, color="#1d2025", linestyle=(0, (4, 2)), linewidth=1)
        axes.set_ylim(0, 1.1)
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def _combinations(done: pd.DataFrame, axes: Sequence[str]) -> str:
    """One row for each combination of labels other than the seed; means over seeds."""
    keys = [axis for axis in axes if axis != "seed"]
    numbers = [column for column in SHOWN if column in done] or [
        column
        for column in without_ends(done).columns
        if column not in axes and pd.api.types.is_numeric_dtype(done[column])
    ]
    rows = []
    for _, group in _groups(done, keys):
        names = [
            f"{value:g}" if isinstance(value, float) else str(value) for value in (group[key].iloc[0] for key in keys)
        ]
        rows.append([*names, f"{len(group)}", *(_mean(group, column) for column in numbers)])
    if not rows:
        return "<p>Nothing has been run.</p>"
    note = (
        "Slowdown of completed flows, and network measurements: means over seeds. " if "short mean" in numbers else ""
    )
    note = (
        f"<p class=note>{note}In brackets: 95% confidence intervals, over seeds if there are several, otherwise over "
        "the flows of the run.</p>"
    )
    return _html.table([*keys, "runs", *numbers], rows, text=len(keys)) + note


def _mean(group: pd.DataFrame, column: str) -> str:
    """The mean over seeds with its interval; for a single run, the run's own interval."""
    values = group[column].astype(float).dropna().to_numpy()
    mean = float(values.mean()) if len(values) else float("nan")

    def said(value: float) -> str:
        return f"{value:,.0f}" if column in COUNTS else _html.number(value)

    ends = of_mean(values)
    if len(group) == 1 and f"{column} low" in group:
        ends = float(group[f"{column} low"].iloc[0]), float(group[f"{column} high"].iloc[0])
    return said(mean) if np.isnan(ends).any() else f"{said(mean)} ({said(ends[0])}–{said(ends[1])})"


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
    table = _html.table(["", "digest", "key in the store", "took"], rows, text=3)
    said = f"{hops:,.0f} packet-hops in {wall:,.0f} s of single runs."
    return f"<p>{said}</p><details><summary>Each run</summary>{table}</details>"


def _scenario(result: SweepResult) -> str:
    first = next(((point, of) for point, of in result.results()), None)
    if first is None:
        return ""
    point, of = first
    said = f"<summary>{escape(point.name)}, every default filled in</summary><pre>{escape(of.scenario_toml)}</pre>"
    return f"<details>{said}</details>"


def _groups(table: pd.DataFrame, keys: Sequence[str]) -> Iterator[tuple[list[str], pd.DataFrame]]:
    """Groups of rows that agree in some columns, in the order of their first row, with the values of these columns."""
    if not keys:
        yield [], table
        return
    for values, group in table.groupby(list(keys), sort=False, dropna=False):
        words = [
            f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in zip(keys, values, strict=True)
        ]
        yield words, group


def _numeric(values: pd.Series[Any]) -> bool:
    return bool(pd.api.types.is_numeric_dtype(values)) and not pd.api.types.is_bool_dtype(values)
