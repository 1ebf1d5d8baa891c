"""Charts of report pages, drawn by Bokeh: a reader points at them, zooms, and hides lines by the legend.

Bokeh because a page holds all of it without network: its core is 1.3 MB, where Plotly's script is 4.8 MB and what makes
Vega's script offline takes 84 MB on disk. It is well kept, BSD-licensed, and Dask brings it already.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from bokeh.document import Document
from bokeh.embed import components
from bokeh.models import (
    ColumnDataSource,
    CustomJSTickFormatter,
    FactorRange,
    HoverTool,
    LogAxis,
    LogTicker,
)
from bokeh.models.annotations import Legend, LegendItem, Span
from bokeh.plotting import figure as bokeh_figure
from bokeh.resources import Resources

from clearway import _points
from clearway._plots import colours, styles
from clearway._points import SPENT, TIERS

if TYPE_CHECKING:
    from clearway._results import Result

# Grey that can be read on white and on black: charts have no background of their own.
INK, GRID = "#7b818c", "#8a8f9840"
DASHES = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "dotdash"}
MARKERS = {"o": "circle", "s": "square", "^": "triangle", "D": "diamond"}
BYTES = """
const units = [["GB", 1e9], ["MB", 1e6], ["KB", 1e3]];
const unit = units.find(([_, scale]) => tick >= scale) ?? ["B", 1];
return `${+(tick / unit[1]).toPrecision(4)} ${unit[0]}`;
"""
PLAIN = "return tick.toLocaleString('en', { maximumSignificantDigits: 4 });"
# Bokeh draws after the page has been read, and tells nobody.
_WHEN_DRAWN = """
const charts = () => Bokeh.documents.length
  ? document.dispatchEvent(new Event("clearway-charts")) : setTimeout(charts, 20);
addEventListener("load", charts);
"""


@dataclass(frozen=True)
class Failure:
    """A line in charts over time: when something failed or came back, and what."""

    at_ms: float
    what: str


class Charts:
    """The charts of one page, and the script that draws them all."""

    def __init__(self, results: Sequence[Result], failures: Sequence[Failure] = ()) -> None:
        self._results, self._failures = list(results), list(failures)
        self._drawn: dict[str, Any] = {}

    def row(self, drawn: Sequence[Any], caption: str) -> str:
        """These charts side by side, with a caption that also names their lines to who can't see them."""
        names = []
        for chart in drawn:
            name = f"chart{len(self._drawn)}"
            self._drawn[name] = chart
            names.append(f"<div class=chart id={name}></div>")
        legends = [chart.legend[0] for chart in drawn if chart.legend]
        lines = dict.fromkeys(item.label.value for legend in legends for item in legend.items)
        said = f"{'; '.join(chart.title.text for chart in drawn)}. {caption}"
        said += f" Lines: {', '.join(lines)}." if lines else ""
        return (
            f'<figure><div class=charts role=img aria-label="{escape(said)}">{"".join(names)}</div>'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )

    def script(self) -> str:
        """Bokeh's own script, and the one that draws the charts; empty without any."""
        if not self._drawn:
            return ""
        # At once: Bokeh would look through all charts again for each that is added.
        document = Document()
        with document.models.freeze():
            for chart in self._drawn.values():
                document.add_root(chart)
        script, places = components(self._drawn, wrap_script=False)
        # Bokeh draws into elements that it names: the page's elements are put around them by their order.
        moves = "".join(
            f'document.getElementById("{name}").innerHTML = {_quoted(str(place))};' for name, place in places.items()
        )
        raw = "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)
        return f"<script>{raw}</script><script>{moves}{script}\n{_WHEN_DRAWN}</script>"

    # --- the charts ---------------------------------------------------------------------------------------------------

    def slowdown(self) -> list[Any]:
        """Slowdown by flow size: mean, and 99th percentile."""
        lines = _points.split(self._results)
        frames = _points.by_size(lines)
        charts = []
        for statistic, title in (("mean", "mean"), ("p99", "99th percentile")):
            chart = chart_of(title, "flow size", "slowdown", x_axis_type="log", y_axis_type="log")
            chart.xaxis.formatter = CustomJSTickFormatter(code=BYTES)
            chart.yaxis.formatter = CustomJSTickFormatter(code=PLAIN)
            for line, frame, style in zip(lines, frames, _styles(self._results, lines)):
                source = ColumnDataSource({"x": frame["size"], "y": frame[statistic], "flows": frame["flows"]})
                add_line(chart, source, line.name, style, marks=True)
            _hover(chart, [("flows of", "@x{0.0 a}B"), ("slowdown", "@y{0.00}"), ("flows", "@flows")])
            charts.append(chart)
        return charts

    def distributions(self) -> list[Any]:
        """Distributions of completion times and of slowdowns."""
        lines = _points.split(self._results)
        charts = []
        for column, title, label in (
            ("fct_ps", "completion time", "completion time (µs)"),
            ("slowdown", "slowdown", "slowdown"),
        ):
            chart = chart_of(title, label, "share of flows", x_axis_type="log", y_range=(0, 1.02))
            chart.xaxis.formatter = CustomJSTickFormatter(code=PLAIN)
            for line, style in zip(lines, _styles(self._results, lines)):
                values, share = _points.distribution(line, column)
                values = values / (1e6 if column == "fct_ps" else 1)
                add_line(chart, ColumnDataSource({"x": values, "y": share}), line.name, style)
            _hover(chart, [(label, "@x{0,0.00}"), ("share of flows", "@y{0.0000}")])
            charts.append(chart)
        return charts

    def utilisation(self) -> list[Any]:
        """Utilisation of links over time, a chart a tier."""
        return [
            self._over_time(TIERS[tier], "share of capacity", partial(_points.utilisation, tier=tier), most=1.02)
            for tier in _points.tiers(self._results)
        ]

    def queues(self) -> list[Any]:
        """Queues over time: the longest of all ports, and the buffer in use at the fullest switch."""
        titles = {"longest_bytes": "longest queue of a port", "used_bytes": "buffer in use at the fullest switch"}
        return [
            self._over_time(title, "KB", partial(_points.queues, column=column)) for column, title in titles.items()
        ]

    def where_time_went(self, results: Sequence[Result]) -> list[Any]:
        """Mean completion time of short, medium and long flows, by cause; estimates have none."""
        names = [result.name for result in results]
        charts = []
        for size in _points.SIZES:
            if not any(_points.of_size(result, size).any() for result in results):
                continue
            frame = _points.spent(results, size)
            chart = chart_of(
                f"{size} flows", "mean completion time (µs)", "", y_range=names[::-1], height=110 + 28 * len(names)
            )
            source = ColumnDataSource({"name": names, **{column: frame[column] for column, _, _ in SPENT}})
            for bar, (column, label, _) in zip(
                chart.hbar_stack(
                    [column for column, _, _ in SPENT],
                    y="name",
                    height=0.65,
                    color=[colour for _, _, colour in SPENT],
                    source=source,
                ),
                SPENT,
            ):
                chart.add_tools(
                    HoverTool(renderers=[bar], tooltips=[("", "@name"), (label, f"@{column}{{0,0.00}} µs")])
                )
            chart.ygrid.visible = False
            charts.append(chart)
        return charts

    def guarantees(self) -> list[Any]:
        """Guaranteed bounds against measurements: the fullest queues by tier, and the waits of packets."""
        some = [(r, s) for r, s in zip(self._results, colours(self._results)) if "guarantees" in r.tables]
        places = [(tier.replace("_", " "), result.name) for tier in TIERS for result, _ in some]
        full = chart_of("most that waited, and the bound", "links", "KB", x_range=FactorRange(factors=places))
        for result, colour in some:
            frame = _points.fullest(result)
            source = ColumnDataSource(
                {
                    "x": [(tier.replace("_", " "), result.name) for tier in TIERS],
                    "most": frame["queue_max_bytes"].astype(float) / 1e3,
                    "bound": frame["queue_bound_bytes"].astype(float) / 1e3,
                }
            )
            full.vbar(x="x", top="most", width=0.8, color=colour, source=source)
            full.scatter(x="x", y="bound", marker="dash", size=24, color=INK, line_width=3, source=source)
        full.xaxis.major_label_orientation = 0.9
        full.y_range.start = 0
        _hover(full, [("", "@x"), ("most", "@most{0,0.0} KB"), ("bound", "@bound{0,0.0} KB")], line=False)
        late = chart_of(
            "waits, and the bound (dashed)",
            "wait in all switches together (µs)",
            "packets that waited longer",
            y_axis_type="log",
            y_range=(0.5e-5, 1.3),
        )
        for result, colour in some:
            times, longer, bound = _points.waits(result, 1e-5)
            add_line(late, ColumnDataSource({"x": times, "y": longer}), result.name, (colour, "-", "o"), step=True)
            late.add_layout(Span(location=bound, dimension="height", line_color=colour, line_dash="dashed"))
        _hover(late, [("wait", "@x{0,0.00} µs"), ("waited longer", "@y{0.0000%}")])
        return [full, late]

    def _over_time(
        self, title: str, label: str, points: Callable[[Any], tuple[Any, Any]], most: float | None = None
    ) -> Any:
        more: dict[str, Any] = {} if most is None else {"y_range": (0, most)}
        chart = chart_of(title, "time (ms)", label, **more)
        lines = _points.every(self._results)
        for line, style in zip(lines, _styles(self._results, lines)):
            time, value = points(line.result)
            if len(time):
                add_line(chart, ColumnDataSource({"x": time, "y": value}), line.name, style)
        if most is None:
            chart.y_range.start = 0
        mark(chart, self._failures)
        _hover(chart, [("time", "@x{0.000} ms"), (label, "@y{0,0.000}")])
        return chart


def mark(chart: Any, failures: Sequence[Failure]) -> None:
    """Draws failures as vertical lines that say what they are."""
    for failure in failures:
        chart.add_layout(Span(location=failure.at_ms, dimension="height", line_color="#c8402f", line_dash="dotted"))
    if failures:
        source = ColumnDataSource(
            {"x": [f.at_ms for f in failures], "y": [0.0] * len(failures), "what": [f.what for f in failures]}
        )
        signs = chart.scatter(x="x", y="y", marker="triangle", size=9, color="#c8402f", source=source)
        chart.add_tools(HoverTool(renderers=[signs], tooltips=[("at", "@x{0.000} ms"), ("", "@what")]))


def _styles(results: Sequence[Result], lines: Sequence[_points.Some]) -> list[tuple[str, str, str]]:
    """Colour, dash and marker of each line: colours of schemes where each result is a line."""
    if len(lines) == len(results):
        return styles(len(lines), colours(results))
    return styles(len(lines))


def chart_of(title: str, x: str, y: str, height: int = 280, **how: Any) -> Any:
    """An empty chart in the look of all, legible on light and dark pages."""
    chart: Any = bokeh_figure(
        title=title,
        x_axis_label=x,
        y_axis_label=y,
        height=height,
        sizing_mode="stretch_width",
        tools="pan,wheel_zoom,box_zoom,reset,save",
        active_scroll=None,
        toolbar_location="above",
        **how,
    )
    chart.toolbar.logo = None
    chart.toolbar.autohide = True
    chart.background_fill_color = chart.border_fill_color = None
    chart.outline_line_color = None
    chart.title.text_color = INK
    for axis in (*chart.xaxis, *chart.yaxis):
        if isinstance(axis, LogAxis):
            axis.ticker = LogTicker(mantissas=[1, 2, 5])
        axis.axis_label_text_color = axis.major_label_text_color = INK
        axis.axis_line_color = axis.major_tick_line_color = INK
        axis.minor_tick_line_color = None
        axis.axis_label_text_font_style = "normal"
    for grid in (*chart.xgrid, *chart.ygrid):
        grid.grid_line_color = GRID
    return chart


def add_line(
    chart: Any,
    source: ColumnDataSource,
    name: str,
    style: tuple[str, str, str],
    *,
    marks: bool = False,
    step: bool = False,
) -> None:
    """Adds a line with its place in the legend, where a click hides it."""
    colour, dash, marker = style
    draw = chart.step if step else chart.line
    how = {"mode": "after"} if step else {}
    drawn = [draw(x="x", y="y", source=source, color=colour, line_dash=DASHES[dash], line_width=1.8, name=name, **how)]
    # A single point has no line, and must be seen all the same.
    if marks or len(source.data["x"]) == 1:
        drawn.append(
            chart.scatter(x="x", y="y", source=source, color=colour, marker=MARKERS[marker], size=6, name=name)
        )
    if not chart.legend:
        chart.add_layout(
            Legend(
                click_policy="hide",
                orientation="horizontal",
                ncols="auto",
                background_fill_color=None,
                border_line_color=None,
                label_text_color=INK,
                label_text_font_size="11px",
                spacing=8,
            ),
            "below",
        )
    # Names are plain text: `value` keeps one that is a column's name from standing for the column.
    chart.legend[0].items.append(LegendItem(label={"value": name}, renderers=drawn))


def _hover(chart: Any, said: list[tuple[str, str]], line: bool = True) -> None:
    names = [("", "$name")] if line else []
    chart.add_tools(HoverTool(tooltips=[*names, *said], renderers=[*chart.renderers], muted_policy="ignore"))


def _quoted(text: str) -> str:
    return json.dumps(text).replace("<", "\\u003c")
