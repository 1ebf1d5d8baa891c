"""Congestion trees as an animated picture: the fabric, and at each port the queued bytes, their root and whether they
may be sent.

A bar is a queue, drawn on the sender's half of its cable: thicker for more bytes, dashed while it is paused, blue for
the share that is innocent. The picture here is of the moment with the most innocent bytes. If the page may run its
script (`_trees.js`), the script draws the other moments from the data in the page. Without the script, and in print,
this picture remains.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from clearway._fabric_layout import HEIGHT, WIDTH, Layout, lay_out
from clearway._looks import looks_of

if TYPE_CHECKING:
    from clearway._results import Result

# Most data of all runs in the page; samples are left out until they fit.
BYTES_MAX = 1_500_000
PAUSED, HOTSPOT, ROOT, HELD, PART = 1, 2, 3, 4, 8
INK, QUIET, BUSY, STOPPED, INNOCENT = "#1d2025", "#d5d9e0", "#e69f00", "#c2410c", "#0072b2"


@dataclass(frozen=True)
class Trees:
    """One run's congestion over time."""

    name: str
    colour: str
    layout: Layout
    times_us: list[float]
    # By sample, by link: state (PAUSED, HOTSPOT or ROOT; plus HELD if something may not be sent, plus PART if that
    # applies only to queues of roots or flows), KB, percent of them innocent.
    instants: list[dict[int, tuple[int, int, int]]]
    held_kb: list[float]
    innocent_kb: list[float]

    def every(self, pick: slice) -> Trees:
        """With fewer samples."""
        few = self.times_us[pick], self.instants[pick], self.held_kb[pick], self.innocent_kb[pick]
        return Trees(self.name, self.colour, self.layout, *few)

    def changes(self) -> list[list[int]]:
        """By sample: what differs from the previous one, as link, state, KB, percent; state 0 for what is over."""
        before: dict[int, tuple[int, int, int]] = {}
        frames = []
        for now in self.instants:
            gone = [number for link in before if link not in now for number in (link, 0, 0, 0)]
            new = [number for link, state in now.items() if before.get(link) != state for number in (link, *state)]
            frames.append(gone + new)
            before = now
        return frames


def section(results: Sequence[Result]) -> str:
    """The figure, if the table `congestion` of any run has rows."""
    every = zip(results, [look.colour for look in looks_of(results)])
    seen = [(r, c) for r, c in every if "congestion" in r.tables and "queues" in r.tables]
    if not any(len(result.congestion) for result, _ in seen):
        return ""
    data, runs = _fitting(_trimmed([_trees(result, colour) for result, colour in seen]))
    thickest = max((state[1] for run in runs for now in run.instants for state in now.values()), default=1)
    worst = max(runs, key=lambda run: max(run.innocent_kb, default=0))
    at_us = worst.times_us[int(np.argmax(worst.innocent_kb))]
    panels = "".join(_panel(run, at_us, thickest) for run in runs)
    script = files("clearway").joinpath("_trees.js").read_text(encoding="utf-8")
    head = json.dumps({"thickest": thickest, "at": at_us}, separators=(",", ":"))
    text = f'{{"head":{head},"runs":{data}}}'.replace("<", "\\u003c")
    return (
        f"<p>{escape(_lead(runs))}</p><figure class=trees id=trees><div class=bar hidden><button type=button "
        "aria-label=Play>▶</button>"
        f'<input type=range min=0 value=0 step=1 aria-label="Time"><output></output></div>'
        f"<div class=panels>{panels}</div><div class=curves></div>{_legend()}"
        f"<figcaption>{_CAPTION}</figcaption></figure>"
        f"<script type=application/json id=trees-data>{text}</script><script>{script}</script>"
    )


def _trees(result: Result, colour: str) -> Trees:
    times = np.unique(result.queues["time_ps"])
    rows = result.congestion
    frame = pd.DataFrame(
        {name: rows[name] for name in ("time_ps", "link", "cause", "role", "paused", "bytes", "innocent_bytes")}
    )
    frame["role"] = frame["role"].map({"paused": PAUSED, "hotspot": HOTSPOT, "root": ROOT})
    frame["whole"] = frame["paused"] & frame["cause"].str.startswith("class")
    frame["held"] = frame["bytes"].where(frame["paused"], 0)
    of_port = frame.groupby(["time_ps", "link"], sort=True).agg(
        role=("role", "max"),
        paused=("paused", "max"),
        whole=("whole", "max"),
        bytes=("bytes", "sum"),
        innocent=("innocent_bytes", "sum"),
    )
    instants: dict[int, dict[int, tuple[int, int, int]]] = {int(time): {} for time in times}
    for (time, link), role, paused, whole, size, innocent in of_port.itertuples():
        percent = round(100 * innocent / size / 5) * 5 if size else 0
        state = int(role) + HELD * bool(paused) + PART * bool(paused and not whole)
        instants.setdefault(int(time), {})[int(link)] = (state, _rounded(size / 1e3), percent)
    sums = frame.groupby("time_ps")[["held", "innocent_bytes"]].sum().reindex(list(instants), fill_value=0) / 1e3
    return Trees(
        result.name,
        colour,
        lay_out(result),
        [time / 1e6 for time in instants],
        list(instants.values()),
        [round(float(value), 1) for value in sums["held"]],
        [round(float(value), 1) for value in sums["innocent_bytes"]],
    )


def _rounded(kb: float) -> int:
    """To two digits: as much as an eye can tell, with few changes between samples."""
    scale = int(10 ** max(0, math.floor(math.log10(max(kb, 1))) - 1))
    return math.ceil(kb / scale) * scale


def _trimmed(runs: list[Trees]) -> list[Trees]:
    """Without the time after which no run has waiting bytes at a hotspot or held packets."""
    busy = [any(kb or what & HELD for what, kb, _ in now.values()) for run in runs for now in run.instants]
    times = [time for run in runs for time in run.times_us]
    end = 1.02 * max((time for time, congested in zip(times, busy) if congested), default=max(times))
    return [run.every(slice(0, int(np.searchsorted(run.times_us, end)) + 1)) for run in runs]


def _fitting(runs: list[Trees]) -> tuple[str, list[Trees]]:
    """The runs as JSON, with as many samples as fit."""
    stride = 1
    while True:
        few = [run.every(slice(None, None, stride)) for run in runs]
        text = json.dumps([_data(run) for run in few], separators=(",", ":"))
        if len(text) <= BYTES_MAX or max(len(run.times_us) for run in few) < 10:
            return text, few
        stride += 1


def _data(run: Trees) -> dict[str, Any]:
    layout = run.layout
    halves = [round(float(value), 1) for value in layout.halves.ravel()]
    return {
        "name": run.name,
        "colour": run.colour,
        "halves": halves,
        "scale": layout.scale,
        "names": layout.names,
        "ends": [end for ends in layout.ends for end in ends],
        "times": run.times_us,
        "changes": run.changes(),
        "held": run.held_kb,
        "innocent": run.innocent_kb,
    }


def _panel(run: Trees, at_us: float, thickest: int) -> str:
    layout = run.layout
    wires = "".join(f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" for a, b, c, d in layout.halves)
    boxes = "".join(
        f'<rect x="{x - w / 2:.1f}" y="{y - h / 2:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{min(2, h / 4):.1f}"/>'
        for x, y, w, h in layout.boxes
    )
    labels = "".join(f'<text x="{x:.0f}" y="{y:.1f}">{escape(text)}</text>' for x, y, text in layout.labels)
    index = int(np.searchsorted(run.times_us, at_us, side="right")) - 1
    over = index < 0 or at_us > run.times_us[-1]
    now = {} if over else run.instants[index]
    bars = "".join(_bar(layout, link, state, thickest) for link, state in _in_order(now))
    said = _said(now, 0.0 if over else run.held_kb[index], 0.0 if over else run.innocent_kb[index])
    return (
        f'<div class=panel><h3><span class=dot style="background:{run.colour}"></span>{escape(run.name)}</h3>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role=img aria-label="{escape(run.name)}"><path class=wires d="{wires}"/>'
        f"<g class=boxes>{boxes}</g><g class=labels>{labels}</g><g class=bars>{bars}</g></svg>"
        f"<p class=said>{said}</p></div>"
    )


def _in_order(now: dict[int, tuple[int, int, int]]) -> list[tuple[int, tuple[int, int, int]]]:
    """Roots last, so that nothing covers them."""
    return sorted(now.items(), key=lambda item: item[1][0] % HELD)


def _bar(layout: Layout, link: int, state: tuple[int, int, int], thickest: int) -> str:
    """Drawn like `bar` of `_trees.js`."""
    what, kb, percent = state
    x, y, to_x, to_y = layout.halves[link]
    width = (0.8 if what & PART else 1.8) + 7 * layout.scale * math.sqrt(kb / thickest)
    held = what & HELD
    colour = STOPPED if held else BUSY
    split_x, split_y = to_x + (x - to_x) * percent / 100, to_y + (y - to_y) * percent / 100
    dash = " stroke-dasharray='4 1.5'" if held else ""
    line = "<path d='M{:.1f} {:.1f}L{:.1f} {:.1f}' stroke='{}' stroke-width='{:.1f}'{}/>"
    parts = [line.format(x, y, split_x, split_y, colour, width, dash)] if percent < 100 else []
    if percent:
        parts.append(line.format(split_x, split_y, to_x, to_y, INNOCENT, width, dash))
    if what % HELD == ROOT:
        parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{5.5 * layout.scale:.1f}'/>")
    return "".join(parts)


def _said(now: dict[int, tuple[int, int, int]], held_kb: float, innocent_kb: float) -> str:
    roots = sum(state[0] % HELD == ROOT for state in now.values())
    ports = sum(bool(state[0] & HELD) for state in now.values())
    share = f" ({innocent_kb / held_kb:.0%})" if held_kb else ""
    return (
        f"<b>{roots}</b> root{'s' if roots != 1 else ''} · <b>{ports}</b> port{'s' if ports != 1 else ''} paused · "
        f"<b>{_size(held_kb)}</b> held · <b class=innocent>{_size(innocent_kb)}{share}</b> innocent"
    )


def _size(kb: float) -> str:
    return f"{kb / 1e3:.2f} MB" if kb >= 1_000 else f"{kb:.0f} KB"


def _lead(runs: Sequence[Trees]) -> str:
    facts = []
    for run in runs:
        most = max(run.innocent_kb, default=0.0)
        if most == 0:
            facts.append(f"{run.name} never holds an innocent packet")
        else:
            at = run.times_us[int(np.argmax(run.innocent_kb))]
            facts.append(f"{run.name} holds up to {_size(most)} of packets whose path meets no root (at {at:,.0f} µs)")
    return f"{'; '.join(facts)}."


_CAPTION = (
    "Each bar is a queue on its sender's side of the cable. Congestion starts at a root, a port at which more arrives "
    "than leaves; pauses carry it from port to port back to the hosts. Innocent packets are held by a pause although "
    "their onward path meets no root at that moment. Hosts hold packets before they make them, so their bars have no "
    "bytes."
)


def _legend() -> str:
    def key(drawing: str, text: str) -> str:
        return f'<span><svg viewBox="0 0 34 14" width=34 height=14>{drawing}</svg>{text}</span>'

    line = "<path d='M{} 7H{}' stroke='{}' stroke-width='{}'{}/>"
    dash = " stroke-dasharray='4 1.5'"
    return (
        "<div class=legend>"
        + "".join(
            (
                key(line.format(8, 32, BUSY, 6, "") + "<circle cx='8' cy='7' r='5.5'/>", "root of congestion"),
                key(line.format(2, 32, BUSY, 6, ""), "hotspot, sending"),
                key(line.format(2, 32, STOPPED, 6, dash), "paused, thicker for more bytes"),
                key(line.format(2, 12, STOPPED, 6, dash) + line.format(12, 32, INNOCENT, 6, dash), "innocent share"),
                key(line.format(2, 32, STOPPED, 1.8, dash), "a class paused, empty"),
                key(line.format(2, 32, STOPPED, 0.8, dash), "only a root's flows paused"),
            )
        )
        + "</div>"
    )


CSS = f"""
.trees {{ position: relative; width: min(1180px, 100vw - 3rem); left: 50%; transform: translateX(-50%); }}
.trees .panels {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(500px, 100%), 1fr));
  gap: 0.6rem 1.6rem; }}
.trees .panel {{ max-width: 880px; }}
.trees h3 {{ margin: 0.2rem 0; font-size: 1.02rem; }}
.trees .bar {{ display: flex; align-items: center; gap: 0.8rem; margin: 0 0 0.6rem; }}
.trees .bar[hidden] {{ display: none; }}
.trees button {{ width: 2.4rem; height: 2.4rem; border: 0; border-radius: 50%; background: {INK}; color: #fff;
  font-size: 0.9rem; line-height: 1; cursor: pointer; }}
.trees button:focus-visible, .trees input:focus-visible {{ outline: 3px solid #56b4e9; outline-offset: 2px; }}
.trees input {{ flex: 1; accent-color: {INK}; }}
.trees output {{ min-width: 6.5rem; text-align: right; font-variant-numeric: tabular-nums; font-weight: 600; }}
.trees .wires {{ stroke: {QUIET}; stroke-width: 0.7; fill: none; }}
.trees .boxes rect {{ fill: #3b4252; }}
.trees .labels text {{ font-size: 11px; fill: #555b66; }}
.trees .bars path {{ fill: none; }}
.trees svg {{ width: 100%; height: auto; display: block; }}
.trees circle {{ fill: {BUSY}; stroke: {INK}; stroke-width: 2.2; }}
.trees .said {{ margin: 0.1rem 0 0; font-size: 0.9rem; color: #30343b; font-variant-numeric: tabular-nums; }}
.trees .innocent {{ color: {INNOCENT}; }}
.trees .legend {{ display: flex; flex-wrap: wrap; gap: 0.3rem 1.4rem; margin: 0.8rem 0 0; font-size: 0.85rem;
  color: #30343b; }}
.trees .legend span {{ display: inline-flex; align-items: center; gap: 0.45rem; }}
.trees .legend svg {{ width: 34px; }}
.trees .curves {{ margin-top: 1rem; display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(500px, 100%), 1fr)); gap: 0.6rem 1.6rem; }}
.trees .curves svg {{ cursor: pointer; }}
.trees .curves text {{ font-size: 11px; fill: #555b66; }}
.trees .curves .title {{ font-size: 12px; fill: {INK}; font-weight: 600; }}
@media print {{
  .trees {{ width: auto; left: 0; transform: none; }}
  .trees .bar {{ display: none; }}
  .trees .panels, .trees .curves {{ grid-template-columns: 1fr 1fr; }}
}}
"""
