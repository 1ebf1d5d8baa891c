"""The part of a report in which a reader explores flows: filters, points to click, and where a flow's time went."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from clearway.reports import models
from clearway.reports.charts import MARKERS, Charts, Failure, add_line, finish, mark, spec_chart, tips
from clearway.reports.looks import looks_of
from clearway.reports.models import Chart, Model
from clearway.reports.spec import SAID
from clearway.results import points as _points
from clearway.results.points import SPENT
from clearway.results.statistics import SIZES, sizes

if TYPE_CHECKING:
    from clearway.results.result import Result

Columns = dict[str, npt.NDArray[Any]]

# Flows of all runs together that a page holds: some 2 MB.
FLOWS_MAX = 12_000
# The slowest share of a run's flows, of which a page holds each one.
SLOWEST = 0.02


def section(results: Sequence[Result], charts: Charts, failures: Sequence[Failure]) -> str:
    """Filters, charts, the slowest flows, and room for what is said about one; empty without a flow that started."""
    of_each = [_flows(result, len(results)) for result in results]
    counts = [len(of["flow"]) for of in of_each]
    if not sum(counts):
        return ""
    frame = _together(of_each, counts)
    frame["run"] = np.repeat(np.arange(len(results)), counts)
    names = [result.name for result in results]
    shown = looks_of(results)
    frame["name"] = _each(names, counts)
    frame["colour"] = _each([look.colour for look in shown], counts)
    markers = _each([MARKERS[look.marker] for look in shown], counts)
    frame["marker"] = np.where(frame["done"], markers, np.array("x", dtype=object))
    source = models.source(frame, name="flows")
    view = models.view(range(sum(counts)), name="shown")
    by_size = _scatter("flows_by_size", "bytes", source, view)
    by_start = _scatter("flows_by_start", "start_ms", source, view)
    mark(by_start, failures)
    shares = spec_chart("shares")
    for run, (name, look) in enumerate(zip(names, shown)):
        add_line(shares, models.source({"x": [1.0, 1.0], "y": [0.0, 0.0]}, name=f"shares{run}"), name, look)
    finish(shares, "shares")
    facts = {
        "runs": names,
        "lines": [_line(results, line) for line in _points.split(results)],
        "spent": [[column, label, colour] for column, label, colour in SPENT if column in frame],
        "packets": "limits_ps" in frame,
    }
    script = files("clearway.reports").joinpath("explorer.js").read_text(encoding="utf-8")
    said = json.dumps(facts).replace("<", "\\u003c")
    every = sum(len(result.flows) for result in results)
    sampled = SAID["sampled"].format(held=f"{sum(counts):,}", every=f"{every:,}") if sum(counts) < every else ""
    return (
        f"<div class=filters id=filters>{''.join(_choice(*one) for one in _choices(results, frame))}"
        "<output id=counted></output></div><p id=group class=note aria-live=polite></p>"
        + charts.row(
            [by_size, by_start],
            SAID["flows"].format(sampled=sampled),
        )
        + charts.row([shares], SAID["shares"])
        + "<div id=flow class=flow aria-live=polite></div>"
        "<table id=slowest class=slowest></table>"
        f"<script type=application/json id=explorer-data>{said}</script>"
        f"<script>{script}</script>"
    )


def _line(results: Sequence[Result], line: _points.Some) -> dict[str, Any]:
    """Which flows are a line's: a run, classes and transports."""
    flows = line.result.flows
    of = {
        name: sorted(set(np.asarray(flows[name], dtype=object)[line.flows].astype(str)))
        for name in ("class", "transport")
    }
    run = next(place for place, result in enumerate(results) if result is line.result)
    return {"name": line.name, "run": run, "kinds": of["class"], "transports": of["transport"]}


def _each(values: Sequence[str], counts: Sequence[int]) -> npt.NDArray[Any]:
    """Each value as often as its count says."""
    return np.repeat(np.array(values, dtype=object), counts)


def _together(of_each: Sequence[Columns], counts: Sequence[int]) -> Columns:
    """Columns of several runs below each other. A column that a run does not have is unknown there."""
    columns = dict.fromkeys(column for of in of_each for column in of)

    def below(column: str) -> npt.NDArray[Any]:
        return np.concatenate([of.get(column, np.full(count, np.nan)) for of, count in zip(of_each, counts)])

    return {column: below(column) for column in columns}


def _flows(result: Result, runs: int) -> Columns:
    """The flows of a run that a page holds, each with the number of flows that it stands for."""
    flows = result.flows
    started = ~np.isnan(_points.floats(result, "start_ps"))
    start, ideal = _points.floats(result, "start_ps"), _points.floats(result, "ideal_ps")
    slowdown = _points.floats(result, "slowdown")
    done = ~np.isnan(slowdown)
    so_far = np.maximum((float(result.info["end_ps"]) - start) / ideal, 1e-3)
    columns: dict[str, Any] = {
        "flow": flows["flow"],
        "src": flows["src"],
        "dst": flows["dst"],
        "bytes": _points.floats(result, "bytes"),
        "kind": np.asarray(flows["class"], dtype=object),
        "transport": np.asarray(flows["transport"], dtype=object),
        "size": sizes(result),
        "start_ms": start / 1e9,
        "fct_us": _points.floats(result, "fct_ps") / 1e6,
        "ideal_us": ideal / 1e6,
        "slowdown": np.where(done, slowdown, so_far),
        "done": done,
        "status": np.asarray(flows["status"], dtype=object),
    }
    if result.level == "packet":
        columns["resent"] = flows["resent_packets"]
        columns |= {column: times / 1e6 for column, times in _points.parts(result).items()}
    # Those under way first, then the slowest; of equals the first.
    places = np.flatnonzero(started)
    places = places[np.lexsort((-columns["slowdown"][places], done[places]))]
    count, most = len(places), max(FLOWS_MAX // runs, 1)
    weight = np.ones(count)
    if count > most:
        whole = min(max(int((~done[places]).sum()), int(count * SLOWEST)), most // 2)
        rest = np.unique(np.linspace(whole, count - 1, most - whole).astype(int))
        places = places[np.concatenate([np.arange(whole), rest])]
        weight = np.repeat([1.0, (count - whole) / len(rest)], [whole, len(rest)])
    held: Columns = {name: np.asarray(column)[places] for name, column in columns.items()}
    racks = _points.racks(result)
    for end in ("src", "dst"):
        held[f"{end}_rack"] = np.array([racks.get(host, "") for host in held[end].tolist()], dtype=object)
    return held | {"weight": weight}


def _choices(results: Sequence[Result], frame: Columns) -> list[tuple[str, str, list[str]]]:
    racks = sorted({*frame["src_rack"], *frame["dst_rack"]} - {""}, key=lambda name: (len(name), name))
    offered = [
        ("name", "run", [result.name for result in results]),
        ("kind", "class", sorted(set(frame["kind"]))),
        ("transport", "transport", sorted(set(frame["transport"]))),
        ("size", "size", [size for size in SIZES if (frame["size"] == size).any()]),
        ("src_rack", "from rack", racks),
        ("dst_rack", "to rack", racks),
    ]
    return [(column, words, values) for column, words, values in offered if len(values) > 1]


def _choice(column: str, words: str, values: Sequence[str]) -> str:
    options = "".join(f'<option value="{escape(value)}">{escape(value)}</option>' for value in values)
    every = f'<option value="">every {escape(words.rpartition(" ")[2])}</option>'
    return f"<label>{escape(words)} <select data-column={column}>{every}{options}</select></label>"


def _scatter(name: str, column: str, source: Model, view: Model) -> Chart:
    chart = spec_chart(name)
    points = chart.draw(
        "Scatter",
        source,
        view,
        x=column,
        y="slowdown",
        color="colour",
        marker="marker",
        size=5,
        alpha=0.55,
        nonselection_alpha=0.25,
        selection_line_color="black",
        selection_alpha=1.0,
    )
    chart.add_tools(models.hover([points], tips(name)), Model("TapTool", renderers=[points]))
    return chart
