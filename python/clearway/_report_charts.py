"""The charts of a report on results: `_points` has their numbers, `_charts` their look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bokeh.models import ColumnDataSource, CustomJSTickFormatter, FactorRange, HoverTool, Scatter, TapTool
from bokeh.models.annotations import Span

from clearway import _points
from clearway._charts import BYTES, INK, PLAIN, Charts, Failure, add_line, chart_of, hover, mark
from clearway._looks import Look, looks, looks_of
from clearway._points import SPENT, TIERS

if TYPE_CHECKING:
    from clearway._results import Result

# With more lines than this, markers are needed to tell them apart.
MANY = 8


class ReportCharts(Charts):
    """The charts of a report on these results."""

    def __init__(self, results: Sequence[Result], failures: Sequence[Failure] = ()) -> None:
        super().__init__()
        self._results, self._failures = list(results), list(failures)

    def slowdown(self) -> list[Any]:
        """Slowdown by flow size: mean, and 99th percentile."""
        lines = _points.split(self._results)
        frames = _points.by_size(lines)
        charts = []
        for statistic, title in (("mean", "mean"), ("p99", "99th percentile")):
            chart = chart_of(title, "flow size", "slowdown", x_axis_type="log", y_axis_type="log")
            chart.xaxis.formatter = CustomJSTickFormatter(code=BYTES)
            chart.yaxis.formatter = CustomJSTickFormatter(code=PLAIN)
            for place, (line, frame, style) in enumerate(zip(lines, frames, self._looks(lines))):
                points: dict[str, Any] = {"x": frame["size"], "y": frame[statistic], "flows": frame["flows"]}
                points |= {"low": frame["low"], "high": frame["high"]}
                source = ColumnDataSource(points, name=f"size {statistic} {place}")
                add_line(chart, source, line.name, style, marks=True)
            hover(chart, [("flows of", "@x{0.0 a}B"), ("slowdown", "@y{0.00}"), ("flows", "@flows{0}")])
            # A click on a point shows its flows: _explorer.js.
            chart.add_tools(TapTool(renderers=[drawn for drawn in chart.renderers if isinstance(drawn.glyph, Scatter)]))
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
            for place, (line, style) in enumerate(zip(lines, self._looks(lines))):
                values, share = _points.distribution(line, column)
                values = values / (1e6 if column == "fct_ps" else 1)
                source = ColumnDataSource({"x": values, "y": share}, name=f"share {column} {place}")
                add_line(chart, source, line.name, style, marks=len(lines) > MANY)
            hover(chart, [(label, "@x{0,0.00}"), ("share of flows", "@y{0.0000}")])
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
        some = [(r, s) for r, s in zip(self._results, looks_of(self._results)) if "guarantees" in r.tables]
        places = [(tier.replace("_", " "), result.name) for tier in TIERS for result, _ in some]
        full = chart_of("most that waited, and the bound", "links", "KB", x_range=FactorRange(factors=places))
        for result, look in some:
            frame = _points.fullest(result)
            source = ColumnDataSource(
                {
                    "x": [(tier.replace("_", " "), result.name) for tier in TIERS],
                    "most": frame["queue_max_bytes"].astype(float) / 1e3,
                    "bound": frame["queue_bound_bytes"].astype(float) / 1e3,
                }
            )
            full.vbar(x="x", top="most", width=0.8, color=look.colour, source=source)
            full.scatter(x="x", y="bound", marker="dash", size=24, color=INK, line_width=3, source=source)
        full.xaxis.major_label_orientation = 0.9
        full.y_range.start = 0
        hover(full, [("", "@x"), ("most", "@most{0,0.0} KB"), ("bound", "@bound{0,0.0} KB")], line=False)
        late = chart_of(
            "waits, and the bound (dashed)",
            "wait in all switches together (µs)",
            "packets that waited longer",
            y_axis_type="log",
            y_range=(0.5e-5, 1.3),
        )
        for result, look in some:
            times, longer, bound = _points.waits(result, 1e-5)
            add_line(late, ColumnDataSource({"x": times, "y": longer}), result.name, look, step=True)
            late.add_layout(Span(location=bound, dimension="height", line_color=look.colour, line_dash="dashed"))
        hover(late, [("wait", "@x{0,0.00} µs"), ("waited longer", "@y{0.0000%}")])
        return [full, late]

    def _over_time(
        self, title: str, label: str, points: Callable[[Any], tuple[Any, Any]], most: float | None = None
    ) -> Any:
        more: dict[str, Any] = {} if most is None else {"y_range": (0, most)}
        chart = chart_of(title, "time (ms)", label, **more)
        lines = _points.every(self._results)
        for line, style in zip(lines, self._looks(lines)):
            time, value = points(line.result)
            if len(time):
                add_line(chart, ColumnDataSource({"x": time, "y": value}), line.name, style, marks=len(lines) > MANY)
        if most is None:
            chart.y_range.start = 0
        mark(chart, self._failures)
        hover(chart, [("time", "@x{0.000} ms"), (label, "@y{0,0.000}")])
        return chart

    def _looks(self, lines: Sequence[_points.Some]) -> list[Look]:
        """A look for each line: those of schemes where each result is a line, or each transport."""
        if len(lines) == len(self._results):
            return looks_of(self._results)
        return looks([line.name for line in lines])
