"""Charts of report pages, drawn by Bokeh: a reader points at them, zooms, and hides lines by the legend.

Bokeh was chosen because its script fits into the page, which then needs no network: its core is 1.3 MB, while Plotly's
script is 4.8 MB and the package that makes Vega's script work offline takes 84 MB on disk. It is well maintained,
BSD-licensed, and already installed with Dask.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from clearway.reports import models
from clearway.reports.looks import Look
from clearway.reports.models import Chart, Model
from clearway.reports.spec import SPEC

INK, GRID = SPEC["looks"]["ink"], SPEC["looks"]["grid"]
# Markers of a line of many points.
SIGNS = 10
# Of matplotlib's words, Bokeh's.
DASHES: dict[str, str] = SPEC["looks"]["dashes"]
MARKERS: dict[str, str] = SPEC["looks"]["markers"]
PLAIN: str = SPEC["ticks"]["plain"]
# Bokeh draws into the page's elements, after the page has been read and without an event.
_DRAW = """
{
  const { document: drawn, roots } = JSON.parse(document.getElementById("charts").textContent);
  const items = [{ docid: "charts", roots: {}, root_ids: Object.keys(roots) }];
  for (const [root, place] of Object.entries(roots)) {
    const within = Object.assign(document.createElement("div"), { id: `${place}-${root}`, style: "display: contents" });
    within.dataset.rootId = root;
    document.getElementById(place).append(within);
    items[0].roots[root] = within.id;
  }
  addEventListener("DOMContentLoaded", () => (
    Bokeh.safely(() => Bokeh.embed.embed_items({ charts: { ...drawn, version: Bokeh.version } }, items))));
}
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

    def __init__(self) -> None:
        self._drawn: dict[str, Chart] = {}

    def row(self, drawn: Sequence[Chart], caption: str, lines: Sequence[str] = ()) -> str:
        """These charts side by side, with a caption that also names their lines for readers who can't see them: those
        of their legends, or `lines`.
        """
        names = []
        for chart in drawn:
            name = f"chart{len(self._drawn)}"
            self._drawn[name] = chart
            names.append(f"<div class=chart id={name}></div>")
        legends = [chart.legend for chart in drawn if chart.legend]
        lines = lines or list(dict.fromkeys(item.label["value"] for legend in legends for item in legend.items))
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
        document, roots = models.document(list(self._drawn.values()))
        drawn = _quoted({"document": document, "roots": dict(zip(roots, self._drawn))})
        return (
            f"<script>{models.script()}</script><script type=application/json id=charts>{drawn}</script>"
            f"<script>{_DRAW}</script>"
        )


def mark(chart: Chart, failures: Sequence[Failure]) -> None:
    """Draws failures as vertical lines that say what they are."""
    for failure in failures:
        chart.add_span(models.span(failure.at_ms, "height", "#c8402f", "dotted"))
    if failures:
        source = models.source(
            {"x": [f.at_ms for f in failures], "y": [0.0] * len(failures), "what": [f.what for f in failures]}
        )
        signs = chart.draw("Scatter", source, x="x", y="y", marker="triangle", size=9, color="#c8402f")
        chart.add_tools(models.hover([signs], [("at", "@x{0.000} ms"), ("", "@what")]))


def chart_of(title: str, x: str, y: str, height: int = 280, **how: Any) -> Chart:
    """An empty chart in the look of all, legible on light and dark pages."""
    chart = Chart(title, x, y, height=height, sizing_mode="stretch_width", toolbar_location="above", **how)
    chart.toolbar.logo = None
    chart.toolbar.autohide = True
    chart.background_fill_color = chart.border_fill_color = None
    chart.outline_line_color = None
    chart.title.text_color = INK
    for axis in (chart.xaxis, chart.yaxis):
        if axis.kind == "LogAxis":
            axis.ticker = Model("LogTicker", mantissas=[1, 2, 5])
        axis.axis_label_text_color = axis.major_label_text_color = INK
        axis.axis_line_color = axis.major_tick_line_color = INK
        axis.minor_tick_line_color = None
        axis.axis_label_text_font_style = "normal"
    for grid in chart.grids:
        grid.grid_line_color = GRID
    return chart


def spec_chart(name: str, filled: str = "", **more: Any) -> Chart:
    """The empty chart of this name in the spec, `filled` in its title."""
    spec = SPEC["charts"][name]
    how: dict[str, Any] = {key: tuple(of) if isinstance(of, list) else of for key, of in spec.get("how", {}).items()}
    made = chart_of(spec["title"].format(filled), spec["x"], spec["y"], **(how | more))
    for axis, ticks in spec.get("ticks", {}).items():
        getattr(made, f"{axis}axis").formatter = models.words(SPEC["ticks"][ticks])
    return made


def finish(made: Chart, name: str, line: bool = True) -> None:
    """Adds what a chart says of its points, by the spec, and where its range begins: once its lines are there."""
    spec = SPEC["charts"][name]
    if "from" in spec:
        made.y_range.start = spec["from"]
    if "to" in spec:
        made.y_range.end = spec["to"]
    if "x_from" in spec:
        made.x_range.start = spec["x_from"]
    for axis, key in (("x", "x_from"), ("y", "from")):
        if spec.get(key) == 1:
            getattr(made, f"{axis}axis").ticker = models.ticks(round_ticks(made, axis))
    if "hover" in spec:
        hover(made, tips(name), line)
    if not any(len(column) for one in made.renderers for column in one.data_source.data.values()):
        # Bokeh complains of a logarithmic axis with nothing on it.
        for axis in ("x_range", "y_range"):
            if getattr(made, axis).kind == "DataRange1d":
                setattr(made, axis, Model("Range1d", start=1, end=10))


def round_ticks(made: Chart, axis: str) -> list[float]:
    """Round places on an axis of slowdowns."""
    columns = [one.data_source.data.get(getattr(one.glyph, axis, {}).get("field"), ()) for one in made.renderers]
    most = max((float(np.max(column)) for column in columns if len(column)), default=1.0)
    return list(SPEC["round"]["near" if most <= 2 else "far"])


def tips(name: str, *filled: str) -> list[tuple[str, str]]:
    """The text of a chart on a point, by the spec."""
    said: list[list[str]] = SPEC["charts"][name]["hover"]
    words, column = filled or ("{}", "{}")
    return [(what.replace("{}", words), value.replace("@{}", f"@{column}")) for what, value in said]


def add_line(
    chart: Chart,
    source: Model,
    name: str,
    style: Look,
    *,
    marks: bool = False,
    step: bool = False,
) -> None:
    """Adds a line with its place in the legend, where a click hides it; with `marks`, its points are marked."""
    kind, how = "Step" if step else "Line", dict[str, Any](mode="after") if step else {}
    signs: dict[str, Any] = {"x": "x", "y": "y", "color": style.colour}
    drawn = [chart.draw(kind, source, name=name, line_dash=DASHES[style.dash], line_width=1.8, **signs, **how)]
    # A single point has no line, and must be seen all the same.
    points = len(source.data["x"])
    if marks or points == 1:
        some = models.view(np.unique(np.linspace(0, points - 1, SIGNS).astype(int)).tolist())
        rows = some if points > 2 * SIGNS else None
        drawn.append(chart.draw("Scatter", source, rows, name, marker=MARKERS[style.marker], size=6, **signs))
    add_to_legend(chart, name, drawn)


def add_to_legend(chart: Chart, name: str, drawn: list[Model]) -> None:
    """Adds a name for what is drawn below the chart, where a click hides it."""
    legend = chart.legend
    if legend is None:
        legend = Model(
            "Legend",
            click_policy="hide",
            orientation="horizontal",
            ncols="auto",
            background_fill_color=None,
            border_line_color=None,
            label_text_color=INK,
            label_text_font_size="11px",
            spacing=8,
            items=[],
        )
        chart.below.append(legend)
    # Names are plain text: a value keeps one that is a column's name from standing for the column.
    legend.items.append(Model("LegendItem", label={"type": "value", "value": name}, renderers=drawn))


def hover(chart: Chart, said: list[tuple[str, str]], line: bool = True) -> None:
    """Adds what a chart says of the points of its lines; with `line`, also whose they are."""
    names = [("", "$name")] if line else []
    chart.add_tools(models.hover(chart.renderers, [*names, *said], muted_policy="ignore"))


def _quoted(what: object) -> str:
    return json.dumps(what, separators=(",", ":")).replace("<", "\\u003c")
