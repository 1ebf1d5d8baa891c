"""The page of `clearway compare --all`, which takes five minutes to read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from clearway.comparisons.all_schemes import FABRICS, WORKLOADS, Contender, SchemeComparison
from clearway.reports import lines as _lines
from clearway.reports.charts import Charts
from clearway.reports.html import number, section, table
from clearway.reports.lines import Axes, Lines, Panel, script
from clearway.scenarios.listings import schemes

TITLE = "Every scheme on one ground"

_BY_LOAD = (
    ("short mean", "mean of short flows"),
    ("short p99", "99th percentile of short flows"),
    ("medium mean", "mean of medium flows"),
    ("medium p99", "99th percentile of medium flows"),
    ("long mean", "mean of long flows"),
    ("long p99", "99th percentile of long flows"),
)

WORDS = {
    "proactive": "asked before they send: by matching, grants, pulls, scheduling or reservation",
    "reactive": "informed by loss, marks or delay after they have sent; and UDP, which gets no feedback",
    "lossless": "paused link by link: RDMA over PFC, and flow controls under senders at line rate",
}

# Slowdown of each workload: heading, column of the frame.
_SLOWDOWN = (
    ("short", "short mean"),
    ("short 99%", "short p99"),
    ("medium", "medium mean"),
    ("long", "long mean"),
)
# Columns of the table: heading, unit, column of the frame, whether more is better.
_COSTS = [
    ("longest queue", "KB", "longest queue KB", False),
    ("sent beyond payload", "%", "overhead", False),
    ("lost", "%", "dropped", False),
    ("fairness", "Jain", "fairness", True),
    ("computing", "µs/packet", "cpu us a packet", False),
]


def page(found: SchemeComparison) -> list[str]:
    """The parts of the page, in order."""
    frame, sustained, who = found.runs, found.sustained, found.contenders
    load, charts = _nearest(frame, 0.6), Charts()
    at = frame[frame["load"] == load]
    parts = [
        f"<h1>{TITLE}</h1>",
        f"<p class=subtitle>{escape(_setting(found))}</p>",
        section(
            f"At a glance, at load {load:g}",
            _glance(at, sustained, found, who) + _highlights(at, sustained, who),
        ),
    ]
    parts.append(section("Slowdown by load", _by_load(found, charts)))
    parts.append(section("What each needs", _needs(who)))
    if found.absent:
        rows = [[name, why] for name, why in found.absent.items()]
        parts.append(section("Did not take part", table(["", "why"], rows, text=2)))
    return [*parts, script(), charts.script()]


def _setting(found: SchemeComparison) -> str:
    fabrics = " and ".join(dict.fromkeys(found.runs["fabric"]))
    workloads = ", ".join(WORKLOADS[name] for name in dict.fromkeys(found.runs["workload"]))
    loads = sorted(set(found.runs["load"]))
    return (
        f"{len(found.contenders)} schemes, {fabrics}, {workloads}, loads {loads[0]:g} to {loads[-1]:g}; {found.setting}"
    )


def _nearest(frame: pd.DataFrame, load: float) -> float:
    loads = frame["load"].unique()
    return float(loads[np.abs(loads - load).argmin()])


def _glance(at: pd.DataFrame, sustained: pd.Series[float], found: SchemeComparison, who: Sequence[Contender]) -> str:
    fabrics = [fabric for fabric in FABRICS if (at["fabric"] == fabric).any()]
    workloads = [name for name in WORKLOADS if (at["workload"] == name).any()]
    ground = at[at["fabric"] == fabrics[0]].set_index(["workload", "scheme"])
    names = [one.name for one in who]
    columns: list[tuple[str, str, pd.Series[float], bool]] = []
    # By column number: the ends of the interval.
    sure: dict[int, pd.DataFrame] = {}
    for workload in workloads:
        of = ground.loc[workload].reindex(names)
        for heading, column in _SLOWDOWN:
            sure[len(columns)] = pd.DataFrame({"low": of[f"{column} low"], "high": of[f"{column} high"]})
            columns.append((WORKLOADS[workload], heading, of[column], False))
    if len(sustained):
        columns.append(("sustained", "load", sustained.reindex(names), True))
    first = ground.loc[workloads[0]].reindex(names).assign(fairness=found.fairness.reindex(names))
    for heading, unit, column, more in _COSTS:
        scale = 100 if unit == "%" else 1
        columns.append((heading, unit, first[column] * scale, more))
    undelivered = ground.groupby(level="scheme")["undelivered"].max().reindex(names)

    groups: list[tuple[str, int]] = []
    for group, *_ in columns:
        if groups and groups[-1][0] == group:
            groups[-1] = (group, groups[-1][1] + 1)
        else:
            groups.append((group, 1))
    head = "<tr><th rowspan=2>" + "".join(f"<th colspan={wide} class=group>{escape(group)}" for group, wide in groups)
    head += "<tr>" + "".join(f"<th><small>{escape(sub)}</small>" for _, sub, _, _ in columns)
    lines = []
    before = ""
    for one in who:
        if one.family != before:
            before = one.family
            lines.append(f"<tr><th class=family colspan={len(columns) + 1}>{escape(before)}: {escape(WORDS[before])}")
        cells = "".join(
            _cell(values, one.name, more, sure.get(place)) for place, (_, _, values, more) in enumerate(columns)
        )
        mark = " *" if undelivered[one.name] > 0 else ""
        lines.append(f"<tr><th class=run>{escape(one.name)}{mark}{cells}")
    interval = "the interval of 95% of resamplings of the run's flows"
    if found.seeds > 1:
        interval = f"the 95% t-interval over {found.seeds} seeds"
    note = (
        f"On the {fabrics[0]}. Slowdown is completion time over that of the same flow alone in the network. Short "
        "flows have up to one bandwidth-delay product, medium ones up to eight, long ones more. Means and 99th "
        f"percentiles, and below each {interval}. The darker a cell, the "
        "further from the column's best: white is the best, the darkest ten times that. Longest queue, bytes sent by "
        "hosts beyond payload (headers, control packets, retransmissions) and packets lost are for "
        f"{WORKLOADS[workloads[0]]}. Fairness: Jain's index of the rates of 16 flows that start together on one link; "
        "1 is equal, and schemes that finish one flow after the other are at 0.45 by design. Computing: CPU time of "
        "the simulation for each packet of payload delivered, for all that hosts and switches compute."
    )
    if len(sustained):
        note += " Sustained: the highest load of IMC10 at which unfinished work does not grow, in steps of 0.05."
    if (undelivered > 0).any():
        note += (
            " * did not deliver every message. Lost messages have no slowdown, so the values look better than they are."
        )
    return (
        f"<table class=glance><thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>"
        f"<p class=note>{escape(note)}</p>"
    )


def _cell(values: pd.Series[float], name: str, more: bool, sure: pd.DataFrame | None = None) -> str:
    value, known = float(values[name]), values.dropna()
    if np.isnan(value) or not len(known):
        return "<td>–"
    best = float(known.max() if more else known.min())
    # The distance from the best value. Shades stop at ten times the best.
    floor = max(abs(best), 1e-3)
    far = np.log10(max(floor / max(value, 1e-9), 1.0) if more else max(value, floor) / floor)
    shade = 0.55 * min(1.0, float(far) * (3 if more else 1))
    between = ""
    if sure is not None:
        low, high = float(sure["low"][name]), float(sure["high"][name])
        between = "" if np.isnan(low) else f"<br><small>{number(low)}–{number(high)}</small>"
    return f'<td style="background:rgba(213,94,0,{shade:.2f})">{number(value)}{between}'


def _highlights(at: pd.DataFrame, sustained: pd.Series[float], who: Sequence[Contender]) -> str:
    """The main findings in words: the best three of the schemes that delivered every message."""
    whole = at.groupby("scheme")["undelivered"].max() == 0
    names = [one.name for one in who if whole[one.name]]

    def best(values: pd.Series[float], more: bool) -> str:
        order = values.reindex(names).dropna().sort_values(ascending=not more, kind="stable").head(3)
        return ", ".join(f"{name} ({number(value)})" for name, value in order.items())

    mean = at.groupby("scheme")[["short p99", "medium mean", "long mean", "all mean", "longest queue KB"]].mean()
    items = [
        ("Shortest tail of short flows (99%, mean over workloads and fabrics)", best(mean["short p99"], False)),
        ("Fastest medium flows (mean)", best(mean["medium mean"], False)),
        ("Fastest long flows (mean)", best(mean["long mean"], False)),
        ("Fastest on average over all flows", best(mean["all mean"], False)),
        ("Shortest queues (KB)", best(mean["longest queue KB"], False)),
    ]
    items += [("Highest sustained load", best(sustained, True))] if len(sustained) else []
    return "<ul>" + "".join(f"<li>{escape(what)}: <b>{escape(who_)}</b>" for what, who_ in items if who_) + "</ul>"


def _by_load(found: SchemeComparison, charts: Charts) -> str:
    """Slowdown by load: a row of panels for each kind of flows, a panel for each workload and fabric."""
    family = {one.name: one.family for one in found.contenders}
    runs = found.runs.assign(family=found.runs["scheme"].map(family), unfinished=found.runs["undelivered"])
    order = {one.name: place for place, one in enumerate(found.contenders)}
    runs = runs.sort_values(["scheme", "load"], key=lambda of: of.map(order) if of.name == "scheme" else of)
    lines = Lines(charts, runs, Axes("load", "scheme", ["family"]), "all")
    words = "".join(
        f"<li>{escape(name)}: {escape(said)}</li>" for name, said in WORDS.items() if name in set(family.values())
    )
    rows = [
        f"<h3>{escape(title[0].upper() + title[1:])}</h3>"
        + lines.row(
            [
                Panel(f"{WORKLOADS[workload]}, {fabric}", column, {"workload": workload, "fabric": fabric})
                for fabric, workload in itertools.product(FABRICS, WORKLOADS)
                if ((runs["workload"] == workload) & (runs["fabric"] == fabric)).any()
            ],
            f"Slowdown by load: {title}. A hollow point did not deliver every message. Click a point to see its run.",
        )
        for column, title in _BY_LOAD
    ]
    shown = ["scheme", "fabric", "workload", "load", *(column for column, _ in _BY_LOAD), "longest queue KB"]
    shown += ["overhead", "dropped", "undelivered", "refused"]
    return f"<ul>{words}</ul>{lines.filters()}{''.join(rows)}{lines.end({name: name for name in shown})}"


def _needs(who: Sequence[Contender]) -> str:
    catalogue = schemes()
    used = list(dict.fromkeys(name for one in who for name in one.uses))
    rows: list[list[Any]] = [
        [
            name,
            str(catalogue.loc[name, "summary"]),
            str(catalogue.loc[name, "needs"]),
            str(catalogue.loc[name, "source"]),
        ]
        for name in used
    ]
    return table(["", "what it does", "what hosts and switches must have", "described in"], rows, text=4)


CSS = f"""{_lines.CSS}
body {{ max-width: 82rem; }}
.glance {{ width: auto; }}
.glance td, .glance th {{ padding: 0.22rem 0.45rem; font-size: 0.8rem; border-top: 1px solid var(--line);
  white-space: nowrap; }}
.glance th.group {{ white-space: normal; }}
.glance th.family {{ text-align: left; padding-top: 0.8rem; font-weight: 400; white-space: normal; }}
@media print {{ .charts {{ zoom: 0.5; grid-template-columns: repeat(4, 1fr); }} }}
@media print {{ section {{ break-inside: auto; }} .glance td, .glance th {{ font-size: 6pt; padding: 0.1rem; }} }}
"""
