"""The charts of a report on results: `points` has their numbers, `charts` their look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from clearway.reports import models
from clearway.reports.charts import INK, Charts, Failure, add_line, finish, mark, spec_chart, tips
from clearway.reports.looks import Look, looks, looks_of
from clearway.reports.models import Chart, Model
from clearway.results import points as _points
from clearway.results.points import SPENT, TIERS
from clearway.results.statistics import SIZES

if TYPE_CHECKING:
    from clearway.results.result import Result

# With more lines than this, markers are needed to tell them apart.
MANY = 8


class ReportCharts(Charts):
    """The charts of a report on these results."""

    def __init__(self, results: Sequence[Result], failures: Sequence[Failure] = ()) -> None:
        super().__init__()
        self._results, self._failures = list(results), list(failures)

    def slowdown(self) -> list[Chart]:
        """Slowdown by flow size: mean, and 99th percentile."""
        lines = _points.split(self._results)
        frames = _points.by_size(lines)
        charts = []
        for statistic in ("mean", "p99"):
            chart = spec_chart(statistic)
            for place, (line, frame, style) in enumerate(zip(lines, frames, self._styles(lines))):
                points: dict[str, Any] = {"x": frame["size"], "y": frame[statistic], "flows": frame["flows"]}
                points |= {"low": frame["low"], "high": frame["high"]}
                source = models.source(points, name=f"size {statistic} {place}")
                add_line(chart, source, line.name, style, marks=True)
            finish(chart, statistic)
            # A click on a point shows its flows: explorer.js.
            chart.add_tools(Model("TapTool", renderers=[one for one in chart.renderers if one.glyph.kind == "Scatter"]))
            charts.append(chart)
        return charts

    def distributions(self) -> list[Chart]:
        """Distributions of completion times and of slowdowns."""
        lines = _points.split(self._results)
        charts = []
        for column in ("fct_ps", "slowdown"):
            chart = spec_chart(column)
            for place, (line, style) in enumerate(zip(lines, self._styles(lines))):
                values, share = _points.distribution(line, column)
                values = values / (1e6 if column == "fct_ps" else 1)
                source = models.source({"x": values, "y": share}, name=f"share {column} {place}")
                add_line(chart, source, line.name, style, marks=len(lines) > MANY)
            finish(chart, column)
            charts.append(chart)
        return charts

    def utilisation(self) -> list[Chart]:
        """Utilisation of links over time, a chart a tier."""
        return [
            self._over_time("utilisation", partial(_points.utilisation, tier=tier), TIERS[tier])
            for tier in _points.tiers(self._results)
        ]

    def queues(self) -> list[Chart]:
        """Queues over time: the longest of all ports, and the buffer in use at the fullest switch."""
        return [
            self._over_time(column, partial(_points.queues, column=column))
            for column in ("longest_bytes", "used_bytes")
        ]

    def entities(self) -> list[Chart]:
        """The bytes that each entity received over time, one chart per result."""
        charts = []
        for result in self._results:
            of = _points.entities(result)
            if not of:
                continue
            chart = spec_chart("entities", result.name)
            for (name, (time, value)), style in zip(of.items(), looks([""] * len(of))):
                add_line(chart, models.source({"x": time, "y": value}), name, style, marks=len(of) > MANY)
            mark(chart, self._failures)
            finish(chart, "entities")
            charts.append(chart)
        return charts

    def where_time_went(self, results: Sequence[Result]) -> list[Chart]:
        """Mean completion time of short, medium and long flows, by cause; estimates have none."""
        names = [result.name for result in results]
        charts = []
        for size in SIZES:
            if not any(_points.of_size(result, size).any() for result in results):
                continue
            frame = _points.spent(results, size)
            chart = spec_chart("spent", size, y_range=names[::-1], height=110 + 28 * len(names))
            source = models.source({"name": names, **{column: frame[column] for column, _, _ in SPENT}})
            columns, colours = [column for column, _, _ in SPENT], [colour for _, _, colour in SPENT]
            bars = chart.stack(columns, colours, source, y="name", height=0.65)
            for bar, (column, label, _) in zip(bars, SPENT):
                chart.add_tools(models.hover([bar], tips("spent", label, column)))
            chart.grids[1].visible = False
            charts.append(chart)
        return charts

    def guarantees(self) -> list[Chart]:
        """Guaranteed bounds against measurements: the fullest queues by tier, and the waits of packets."""
        some = [(r, s) for r, s in zip(self._results, looks_of(self._results)) if "guarantees" in r.tables]
        places = [(tier.replace("_", " "), result.name) for tier in TIERS for result, _ in some]
        full = spec_chart("full", x_range=places)
        for result, look in some:
            frame = _points.fullest(result)
            source = models.source(
                {
                    "x": [(tier.replace("_", " "), result.name) for tier in TIERS],
                    "most": frame["queue_max_bytes"].astype(float) / 1e3,
                    "bound": frame["queue_bound_bytes"].astype(float) / 1e3,
                }
            )
            full.draw("VBar", source, x="x", top="most", width=0.8, color=look.colour)
            full.draw("Scatter", source, x="x", y="bound", marker="dash", size=24, color=INK, line_width=3)
        full.xaxis.major_label_orientation = 0.9
        finish(full, "full", line=False)
        late = spec_chart("late")
        for result, look in some:
            times, longer, bound = _points.waits(result, 1e-5)
            add_line(late, models.source({"x": times, "y": longer}), result.name, look, step=True)
            late.add_span(models.span(bound, "height", look.colour, "dashed"))
        finish(late, "late")
        return [full, late]

    def _over_time(self, name: str, points: Callable[[Any], tuple[Any, Any]], title: str = "") -> Chart:
        chart = spec_chart(name, title)
        lines = _points.every(self._results)
        for line, style in zip(lines, self._styles(lines)):
            time, value = points(line.result)
            if len(time):
                add_line(chart, models.source({"x": time, "y": value}), line.name, style, marks=len(lines) > MANY)
        mark(chart, self._failures)
        finish(chart, name)
        return chart

    def _styles(self, lines: Sequence[_points.Some]) -> list[Look]:
        """A look for each line: those of schemes where each result is a line, or each transport."""
        if len(lines) == len(self._results):
            return looks_of(self._results)
        return looks([line.name for line in lines])
