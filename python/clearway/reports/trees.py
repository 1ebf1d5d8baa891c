"""Congestion trees in a report: the samples of each run in the viewer of `viewer`, side by side on one clock.

The viewer begins at the moment with the most innocent bytes, which the sentence above it names, too.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from clearway.reports import view as _view
from clearway.reports.looks import looks_of

if TYPE_CHECKING:
    from clearway.results.result import Result

# Most data of all runs in the page, as it stands there; samples are left out until they fit.
BYTES_MAX = 1_500_000


def section(results: Sequence[Result]) -> str:
    """The figure, if the table `congestion` of any run has rows."""
    every = zip(results, [look.colour for look in looks_of(results)])
    seen = [(r, c) for r, c in every if "congestion" in r.tables and "queues" in r.tables]
    if not any(len(result.congestion) for result, _ in seen):
        return ""
    shown = [result for result, _ in seen]
    data = "".join(f"<script type=text/plain class=trees-data>{words}</script>" for words in _fitting(shown))
    colours = json.dumps([colour for _, colour in seen])
    return (
        f"{_view.modules()}<p>{escape(_lead(shown))}</p><figure>"
        f"<div id=trees>This picture needs JavaScript.</div><figcaption>{_CAPTION}</figcaption></figure>{data}"
        '<script type=module>import { mountPackedTogether } from "clearway/viewer.js"; '
        'const packed = [...document.querySelectorAll(".trees-data")].map((of) => of.textContent); '
        f'await mountPackedTogether(document.getElementById("trees"), packed, {colours});</script>'
    )


def _fitting(results: Sequence[Result]) -> list[str]:
    """The views of these results as a page holds them, with as many samples as fit."""
    samples = max(len(np.unique(result.congestion["time_ps"])) for result in results)
    stride = 1
    while True:
        views = [_view.packed(result, packets=False, stride=stride) for result in results]
        words = [base64.b64encode(gzip.compress(view, 6, mtime=0)).decode() for view in views]
        size = sum(map(len, words))
        if size <= BYTES_MAX or samples / stride < 10:
            return words
        # One by one would take minutes where it ends at a hundred. Of what is left, less is alike: it never overshoots.
        stride = max(stride + 1, min(stride * size // BYTES_MAX, samples // 10))


def _lead(results: Sequence[Result]) -> str:
    facts = []
    for result in results:
        rows = result.congestion
        frame = pd.DataFrame({"time_ps": rows["time_ps"], "bytes": rows["innocent_bytes"].astype(float)})
        innocent = frame.groupby("time_ps")["bytes"].sum()
        if not innocent.max() > 0:
            facts.append(f"{result.name} never holds an innocent packet")
        else:
            most, at_us = _size(float(innocent.max())), float(str(innocent.idxmax())) / 1e6
            facts.append(f"{result.name} holds up to {most} of packets whose path meets no root (at {at_us:,.0f} µs)")
    return f"{'; '.join(facts)}."


def _size(size: float) -> str:
    return f"{size / 1e6:.2f} MB" if size >= 1e6 else f"{size / 1e3:.0f} KB"


_CAPTION = (
    "Each bar is a queue on its sender's side of the cable. Congestion starts at a root, a port at which more arrives "
    "than leaves; pauses carry it from port to port back to the hosts. Innocent packets are held by a pause although "
    "their onward path meets no root at that moment. Hosts hold packets before they make them, so their bars have no "
    "bytes."
)
CSS = _view.css()
