"""Charts of many runs, as pages of sweeps and of `compare --all` have them: lines along one axis, filters for the
others, and a table of the runs of the point that is clicked.

All series are in the page, and a filter hides some. So a page is as small as its table, and works without network.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from clearway.reports import html, models
from clearway.reports.charts import DASHES, INK, MARKERS, PLAIN, Charts, chart_of
from clearway.reports.looks import Look, looks
from clearway.reports.models import Chart, Model
from clearway.reports.spec import SPEC

# Of more series than this a page begins with those of the first value of each filter.
SHOWN = 16
# With more lines the bands would hide each other; a page's script asks too.
BANDS = 6


@dataclass(frozen=True)
class Panel:
    """One chart: a column of the table, and the runs that it is about."""

    title: str
    column: str
    where: Mapping[str, Any] = field(default_factory=dict)
    """Values of axes that its runs have."""
    slowdown: bool = True
    """Whether its values are ratios, on a logarithmic axis; else the axis begins at 0."""
    line: float | None = None
    """Where a dashed line crosses the chart."""


@dataclass(frozen=True)
class Axes:
    """The roles of the axes of the table of runs in the charts."""

    x: str
    line: str | None
    filters: Sequence[str] = ()


class Lines:
    """The charts of a table of runs on one page; `name` tells them apart from others there."""

    def __init__(self, charts: Charts, runs: pd.DataFrame, axes: Axes, name: str) -> None:
        self._charts, self._axes, self._name = charts, axes, name
        self._runs = runs.reset_index(drop=True)
        ticks = runs[axes.x].drop_duplicates()
        self._words = not numeric(ticks)
        self._ticks = list(ticks) if self._words else sorted(ticks)
        # Of each tick: which runs are there.
        self._at = [(self._runs[axes.x] == tick).to_numpy() for tick in self._ticks]
        self._left = (self._runs["unfinished"] > 0).to_numpy()
        # One range: who zooms into a chart zooms into all.
        self._across = self._range()
        self._series = list(self._every_series())
        self._panels: list[str] = []

    def _every_series(self) -> Iterator[_Series]:
        """The series in the order of the lines: a line is several series where a filter tells its runs apart."""
        axes, runs = self._axes, self._runs
        lines = list(dict.fromkeys(runs[axes.line])) if axes.line else [""]
        apart = [name for name in axes.filters if not axes.line or runs.groupby(axes.line)[name].nunique().max() > 1]
        for line, look in zip(lines, looks([said(line) for line in lines])):
            of = runs[runs[axes.line] == line] if axes.line else runs
            combinations = dict.fromkeys(zip(*(of[name] for name in axes.filters))) if axes.filters else [()]
            for number, values in enumerate(combinations):
                kinds = dict(zip(axes.filters, values))
                words = [said(line)] if axes.line else []
                words += [f"{key} {said(value)}" for key, value in kinds.items() if key in apart]
                mine = np.ones(len(runs), dtype=bool)
                for key, value in ({axes.line: line} if axes.line else {}).items() | kinds.items():
                    mine &= (runs[key] == value).to_numpy()
                yield _Series(", ".join(words) or "all runs", look.beside(number), kinds, mine)

    def filters(self) -> str:
        """Choices of what is shown, and a legend in which a click hides a line."""
        choices = []
        for axis in self._axes.filters:
            values = list(dict.fromkeys(said(value) for value in self._runs[axis]))
            first = values[0] if len(self._series) > SHOWN else ""
            options = "".join(
                f'<option value="{escape(one)}"{" selected" if one == first else ""}>{escape(one)}</option>'
                for one in values
            )
            every = "<option value=''>all</option>"
            choices.append(
                f'<label>{escape(axis)} <select data-axis="{escape(axis)}" autocomplete=off>{every}{options}</select>'
                "</label>"
            )
        lines = "".join(
            f"<label data-series={place}><input type=checkbox checked autocomplete=off>{html.swatch(one.look)}"
            f"{escape(one.name)}</label>"
            for place, one in enumerate(self._series)
        )
        buttons = "<button type=button data-all=1>all</button><button type=button data-all=''>none</button>"
        return (
            f'<div class=lines data-lines="{self._name}"><div class=filters>{"".join(choices)}</div>'
            f"<fieldset class=legend><legend>Lines</legend>{lines}{buttons if len(self._series) > 1 else ''}</fieldset>"
            "</div>"
        )

    def row(self, panels: Sequence[Panel], caption: str) -> str:
        """These panels side by side, without those that have no values."""
        drawn = [chart for panel in panels if (chart := self._chart(panel)) is not None]
        if not drawn:
            return "<p>No run has such flows.</p>"
        return self._charts.row(drawn, caption, [one.name for one in self._series])

    def end(self, columns: Mapping[str, str]) -> str:
        """Room for the runs of a point that is clicked, with these columns of the table and their headings, and what
        the page's script must know.
        """
        runs = [
            [said(value) if isinstance(value, str) or not np.isscalar(value) else _plain(value) for value in row]
            for row in self._runs[list(columns)].itertuples(index=False)
        ]
        series = [{axis: said(value) for axis, value in one.kinds.items()} for one in self._series]
        facts = {
            "name": self._name, "panels": self._panels, "series": series, "bands": BANDS,
            "columns": list(columns.values()), "runs": runs,
        }  # fmt: skip
        text = json.dumps(facts).replace("<", "\\u003c")
        return (
            f'<div class=flow data-runs="{self._name}" aria-live=polite></div>'
            f"<script type=application/json class=lines-data>{text}</script>"
        )

    def _chart(self, panel: Panel) -> Chart | None:
        points, lines = self._sources(panel)
        if not points["x"]:
            return None
        name = f"{self._name}-{len(self._panels)}"
        self._panels.append(name)
        chart = chart_of(
            panel.title,
            self._axes.x,
            "slowdown" if panel.slowdown else "",
            height=260,
            y_axis_type="log" if panel.slowdown else "linear",
            x_axis_type="log" if self._spread() else "linear",
            x_range=self._across,
            y_range=Model("DataRange1d", only_visible=True),
        )
        if not panel.slowdown or min(points["y"]) >= 1:
            chart.y_range.start = 1 if panel.slowdown else 0
        if panel.slowdown:
            most = max(points["y"])
            chart.yaxis.ticker = models.ticks(SPEC["round"]["near" if most <= 2 else "far"])
        chart.yaxis.formatter = models.words(PLAIN)
        self._dress_x(chart)
        if panel.line is not None:
            chart.add_span(models.span(panel.line, "width", INK, "dashed"))
        views = [
            models.view(range(count), name=f"{name}-{of}")
            for of, count in (("points", len(points["x"])), ("lines", len(lines["series"])))
        ]
        of_lines = models.source(lines, name=f"{name}-of-lines")
        bands: dict[str, Any] = {"xs": "band_x", "ys": "band_y", "color": "colour", "alpha": 0.15, "line_width": 0}
        chart.draw("Patches", of_lines, views[1], f"{name}-bands", **bands)
        if not self._words:
            dashed: dict[str, Any] = {
                "xs": "xs",
                "ys": "ys",
                "line_color": "colour",
                "line_dash": "dash",
                "line_width": 1.8,
            }
            chart.draw("MultiLine", of_lines, views[1], **dashed)
        of_points = models.source(points, name=f"{name}-of-points")
        if self._words:
            # Between names there is nothing to connect: each point has the span of its runs.
            ends = {"x0": "x", "y0": "least", "x1": "x", "y1": "most"}
            chart.draw("Segment", of_points, views[0], **ends, line_color="colour", line_width=1.8)
        drawn = chart.draw(
            "Scatter",
            of_points,
            views[0],
            x="x",
            y="y",
            marker="marker",
            line_color="colour",
            fill_color="fill",
            size=7,
            nonselection_alpha=0.35,
        )
        # Bokeh complains of a logarithmic axis with nothing on it: the script shows this instead.
        empty = models.source({"x": points["x"][:1], "y": points["y"][:1]})
        chart.draw("Scatter", empty, name=f"{name}-empty", x="x", y="y", alpha=0).visible = False
        tips = [("", "@name"), (self._axes.x, "@at"), (panel.title, "@said"), ("runs", "@count; @left")]
        chart.add_tools(models.hover([drawn], tips), Model("TapTool", renderers=[drawn]))
        return chart

    def _dress_x(self, chart: Chart) -> None:
        ticks = self._ticks
        if self._words:
            chart.xaxis.ticker = models.ticks(list(range(len(ticks))))
            chart.xaxis.major_label_overrides = {place: said(tick) for place, tick in enumerate(ticks)}
            chart.xaxis.major_label_orientation = "horizontal" if len(ticks) <= 4 else 0.6
        else:
            chart.xaxis.formatter = models.words(PLAIN)
        if self._spread() and len(ticks) <= 10:
            chart.xaxis.ticker = models.ticks(ticks)

    def _range(self) -> Model:
        first, last = (0, len(self._ticks) - 1) if self._words else (self._ticks[0], self._ticks[-1])
        if self._spread():
            return Model("Range1d", start=first / 1.2, end=last * 1.2)
        room = 0.5 if self._words else 0.06 * (last - first) or 0.5
        return Model("Range1d", start=first - room, end=last + room)

    def _beside(self, series: int) -> float:
        """How far a series is drawn beside the middle of a name, so that none hides another."""
        count = len(self._series)
        return 0.6 * ((series + 0.5) / count - 0.5) if self._words else 0.0

    def _spread(self) -> bool:
        """Whether the x axis is logarithmic."""
        ticks = self._ticks
        return not self._words and ticks[0] > 0 and ticks[-1] / ticks[0] >= 16

    def _sources(self, panel: Panel) -> tuple[dict[str, Any], dict[str, Any]]:
        """The points of a panel, a row each, and its lines."""
        names = ("x", "y", "at", "said", "name", "series", "colour", "fill", "marker", "runs", "count", "left", "least",
                 "most")  # fmt: skip
        points: dict[str, Any] = {name: [] for name in names}
        lines: dict[str, Any] = {name: [] for name in ("series", "colour", "dash", "xs", "ys", "band_x", "band_y")}
        here = np.ones(len(self._runs), dtype=bool)
        for axis, value in panel.where.items():
            here &= (self._runs[axis] == value).to_numpy()
        for place, one in enumerate(self._series):
            drawn = list(self._points(panel, here & one.mine))
            for point in drawn:
                values = (
                    point.x + self._beside(place), point.mean, point.at, point.said, one.name, place, one.look.colour,
                    # A hollow point has runs that did not deliver everything.
                    "#ffffff" if point.left else one.look.colour, MARKERS[one.look.marker], point.runs,
                    len(point.runs), "not every flow done" if point.left else "every flow done",
                    point.least, point.most,
                )  # fmt: skip
                for name, value in zip(names, values):
                    points[name].append(value)
            if drawn:
                x, ends = [p.x for p in drawn], [p.least for p in drawn]
                band = not self._words and any(p.most > p.least for p in drawn)
                of_line = (
                    place, one.look.colour, DASHES[one.look.dash], x, [p.mean for p in drawn],
                    x + x[::-1] if band else [], ends + [p.most for p in drawn][::-1] if band else [],
                )  # fmt: skip
                for name, value in zip(lines, of_line):
                    lines[name].append(value)
        return points, lines

    def _points(self, panel: Panel, mine: np.ndarray[Any, np.dtype[np.bool_]]) -> Iterator[_Point]:
        names = [name for name in (panel.column, f"{panel.column} low", f"{panel.column} high") if name in self._runs]
        columns = self._runs[names].to_numpy(dtype=float)
        for place, tick in enumerate(self._ticks):
            of = np.flatnonzero(mine & self._at[place])
            known = columns[of, 0][~np.isnan(columns[of, 0])]
            if not len(known):
                continue
            ends = columns[of[0], 1:] if len(of) == 1 and len(names) == 3 else np.full(2, np.nan)
            words = html.number(known.mean())
            if not np.isnan(ends).any():
                words += f" (95% of resamplings {html.number(ends[0])}–{html.number(ends[1])})"
            elif len(known) > 1:
                words += f" ({html.number(known.min())}–{html.number(known.max())})"
            yield _Point(
                float(place if self._words else tick),
                said(tick),
                float(known.mean()),
                float(known.min()),
                float(known.max()),
                words,
                of.tolist(),
                bool(self._left[of].any()),
            )


@dataclass(frozen=True)
class _Series:
    name: str
    look: Look
    kinds: Mapping[str, Any]
    mine: np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class _Point:
    x: float
    at: str
    mean: float
    least: float
    most: float
    said: str
    runs: list[int]
    left: bool


def script() -> str:
    """The script of filters and clicks: once a page, before that of the charts."""
    return f"<script>{files('clearway.reports').joinpath('lines.js').read_text(encoding='utf-8')}</script>"


def numeric(values: pd.Series[Any]) -> bool:
    """Whether these are numbers, and not truths."""
    return bool(pd.api.types.is_numeric_dtype(values)) and not pd.api.types.is_bool_dtype(values)


def said(value: Any) -> str:
    """A label as text."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, float | np.floating):
        return None if np.isnan(value) else float(value)
    return value.item() if isinstance(value, np.generic) else value


CSS = """
.lines .legend { border: 1px solid var(--rule); border-radius: 6px; margin: 0 0 1rem; padding: 0.2rem 0.8rem 0.5rem;
  gap: 0.15rem 1.1rem; align-items: center; }
.lines .legend label { cursor: pointer; white-space: nowrap; }
.lines .legend label:has(input:not(:checked)) { opacity: 0.45; }
.lines .legend legend { font-size: 0.8rem; color: var(--soft); padding: 0 0.3rem; }
.lines button { font: inherit; color: inherit; background: var(--quiet); border: 1px solid var(--rule);
  border-radius: 4px; padding: 0 0.5rem; cursor: pointer; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr)); }
@media print { .charts { grid-template-columns: repeat(3, 1fr); } }
@media print { .lines button, .lines input, .lines label:has(input:not(:checked)) { display: none; } }
"""
