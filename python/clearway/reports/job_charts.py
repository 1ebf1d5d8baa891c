"""The part of a report on training jobs: a timeline of their ranks, with the critical path."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from clearway.reports import html, models
from clearway.reports.charts import Charts, add_line, add_to_legend, spec_chart, tips
from clearway.reports.looks import Look
from clearway.reports.models import Chart
from clearway.reports.spec import SAID, SPEC, TABLES
from clearway.results.jobs import critical, said_of, summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clearway.results.result import Result

RANKS_MAX = 48
"""Most ranks that a timeline draws."""
COMPUTE, CRITICAL = SPEC["looks"]["compute"], SPEC["looks"]["critical"]
# Colours of collectives, in the order in which their names are met; they repeat after ten.
COLLECTIVES: list[str] = SPEC["looks"]["collectives"]


def section(results: Sequence[Result], charts: Charts) -> str:
    """The part of a report on jobs; empty without any."""
    known = [result for result in results if "jobs" in result.tables]
    parts = []
    for result in known:
        named = f"{result.name}: " if len(results) > 1 else ""
        head = [*TABLES["jobs"]]
        head += ["slowdown"] if "slowdown" in summary(result) else []
        rows = [[name, *map(int, row[:3]), *map(html.number, row[3:])] for name, *row in summary(result).itertuples()]
        parts.append(html.table(head, rows, text=1))
        parts.append("".join(f"<p>{escape(named + sentence)}</p>" for sentence in said_of(result)))
        for job in summary(result).index:
            parts.append(charts.row([timeline(result, job, f"{named}{job}")], SAID["jobs"]))
    return html.section("Training jobs", "".join(parts))


def drawn_ranks(count: int, path: pd.DataFrame) -> list[int]:
    """The ranks that a timeline draws: all, or of many those with most of the critical path, and others evenly."""
    if count <= RANKS_MAX:
        return list(range(count))
    spent = (path["end"] - path["begin"]).groupby(path["rank"]).sum().nlargest(RANKS_MAX // 2)
    evenly = np.linspace(0, count - 1, RANKS_MAX - len(spent)).astype(int)
    return sorted({*map(int, spent.index), *map(int, evenly)})


def timeline(result: Result, job: str, title: str) -> Chart:
    """The activity of a job's ranks over time, and its critical path."""
    frame = result.ranks.to_pandas()
    path = critical(result, job)
    mine = frame[(frame["job"] == job) & frame["begin_ps"].notna() & frame["end_ps"].notna()]
    count = int(str(summary(result)["ranks"][job]))
    ranks = drawn_ranks(count, path)
    place = {rank: row for row, rank in enumerate(ranks)}
    mine = mine[mine["rank"].isin(ranks)]
    chart = spec_chart("timeline", title, height=min(120 + 14 * len(ranks), 700), y_range=(len(ranks) - 0.3, -0.7))
    if len(ranks) < count:
        chart.yaxis.axis_label = f"rank ({len(ranks)} of {count:,})"
    chart.yaxis.ticker = models.ticks(range(0, len(ranks), max(1, len(ranks) // 16)))
    chart.yaxis.major_label_overrides = {row: str(rank) for row, rank in enumerate(ranks)}
    names = list(dict.fromkeys(mine.loc[mine["what"] == "collective", "name"].astype(str)))
    groups = [("compute", COMPUTE, 0.8, mine["what"] == "compute")]
    for index, name in enumerate(names):
        of = (mine["what"] == "collective") & (mine["name"] == name)
        groups.append((name, COLLECTIVES[index % len(COLLECTIVES)], 0.45, of))
    for name, colour, height, of in groups:
        rows = mine[of]
        of_rank: dict[str, Any] = {
            "rank": rows["rank"].astype(int),
            "row": rows["rank"].map(place),
            "host": rows["host_name"].astype(str),
        }
        span: dict[str, Any] = {
            "left": rows["begin_ps"].astype(float) / 1e6,
            "right": rows["end_ps"].astype(float) / 1e6,
        }
        said_of_it: dict[str, Any] = {"iteration": rows["iteration"], "name": rows["name"].astype(str)}
        source = models.source({**of_rank, **span, **said_of_it})
        look = {"color": colour, "fill_alpha": 0.75, "line_color": None}
        drawn = chart.draw("HBar", source, name=name, y="row", left="left", right="right", height=height, **look)
        add_to_legend(chart, name, [drawn])
    chart.add_tools(models.hover(chart.renderers, tips("timeline")))
    line = _path_line(path, place)
    add_line(chart, models.source(line), "critical path", Look(CRITICAL))
    return chart


def _path_line(path: pd.DataFrame, place: dict[int, int]) -> dict[str, Any]:
    """The critical path as points: along a rank while it computes, across to the receiver with a message. Ranks
    that are not drawn leave a gap.
    """
    to = path["to_rank"].astype(float).fillna(path["rank"]).where(path["part"] != "answer", path["rank"])
    ends = pd.DataFrame({"begin": path["rank"], "end": to.astype(int)}).map(lambda rank: place.get(rank, np.nan))
    x, y = path[["begin", "end"]].to_numpy(dtype=float).ravel(), ends.to_numpy(dtype=float).ravel()
    return {"x": x.tolist(), "y": y.tolist()}
