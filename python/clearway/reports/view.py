"""A run's packets drawn over time, or its samples of congestion, as one page that needs no network: `clearway view`.

The viewer is `viewer/*.js`, which the playground has, too. `viewer/format.js` says what a view is; here it is made of
a saved result. In the page the viewer's modules stand in an import map, and the view as compressed bytes, so that
nothing that a scenario says is ever markup.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import struct
import sys
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from clearway.reports import html
from clearway.results.packets import asked

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from clearway.results.result import Result

ROWS_MAX = 200_000
"""Packets that a view holds, and rows of samples."""

# As in `viewer/format.js`.
COLUMNS = {
    "links": ("from_node", "to_node", "tier", "rate_bps", "delay_ps"),
    "flows": (
        *("flow", "src", "dst", "bytes", "class", "transport", "start_ps", "completed_ps", "slowdown", "status"),
    ),
    "packets": (
        *("time_ps", "node", "to_node", "link", "came_ps", "last_ps", "lost", "flow", "transport", "says", "source"),
        *("destination", "hop", "class", "bytes", "payload_bytes", "offset_bytes", "marked", "trimmed"),
    ),
    "congestion": ("time_ps", "link", "cause", "role", "paused", "bytes", "innocent_bytes"),
}
MODULES = ("format", "layout", "history", "story", "picture", "curves", "viewer")
"""Each may import those before it, as `clearway/NAME.js`."""


def write(result: Result, path: Path) -> Path:
    """Writes the page of a result with recorded packets or samples of congestion: the whole file or nothing."""
    words = base64.b64encode(gzip.compress(packed(result), 6, mtime=0)).decode()
    what = "Every recorded packet" if _has_packets(result) else "Samples of queues, pauses and roots of congestion"
    body = (
        f"<h1>{escape(result.name)}</h1><p class=subtitle>{what}, drawn over time.</p>{modules()}"
        "<div id=view>This page needs JavaScript.</div>"
        f"<script type=text/plain id=view-data>{words}</script>"
        '<script type=module>import { mountPacked } from "clearway/viewer.js"; '
        'const at = (id) => document.getElementById(id); await mountPacked(at("view"), at("view-data").textContent);'
        "</script>"
    )
    return html.write(f"{result.name}: packets over time", [body], path, f"body {{ max-width: 80rem; }}\n{css()}")


def modules() -> str:
    """The viewer's modules as a page has them, once, before it imports `clearway/viewer.js`."""
    folder = files("clearway.reports").joinpath("viewer")
    texts = {name: folder.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in MODULES}
    places = {f"clearway/{name}.js": f"data:text/javascript;base64,{_base64(text)}" for name, text in texts.items()}
    return f"<script type=importmap>{json.dumps({'imports': places})}</script>"


def css() -> str:
    """The viewer's looks."""
    return files("clearway.reports").joinpath("viewer", "viewer.css").read_text(encoding="utf-8")


def packed(result: Result, *, packets: bool = True, stride: int = 1) -> bytes:
    """The view of a result: the length of its head, its head, and its columns one after another. Of the samples of
    congestion there is one in `stride`, or in more if they are too many.
    """
    packets = packets and _has_packets(result, ask=True)
    samples, stride = _samples(result, stride)
    head: dict[str, Any] = {
        "name": result.name,
        "end_ps": result.info["end_ps"],
        "dims": _dims(result),
        "tenants": _tenants(result),
        "partial": packets and any(asked(result).get(key) for key in ("flows", "classes", "hosts", "links")),
        "notes": _notes(result, packets, stride),
        "tables": {},
    }
    columns = []
    for name, wanted in COLUMNS.items():
        table = result._tables.get(name)
        if name == "packets":
            table = result._tables["packets"].slice(0, ROWS_MAX) if packets else None
        if name == "congestion" and samples is not None:
            table = samples
        if table is None or not set(wanted) <= set(table.column_names):
            continue
        said = {}
        for column in wanted:
            values, names = _column(table[column])
            said[column] = {"kind": "numbers"} if names is None else {"kind": "names", "names": names}
            columns.append(values.tobytes())
        head["tables"][name] = {"rows": table.num_rows, "columns": said}
    text = json.dumps(head, separators=(",", ":")).encode()
    return b"".join([struct.pack("<I", len(text)), text, *columns])


def _has_packets(result: Result, ask: bool = False) -> bool:
    """Whether there are recorded packets. If you `ask`, an error says how to record some where there is nothing else to
    draw.
    """
    if "packets" in result.tables and len(result.packets):
        return True
    if not ask or ("congestion" in result.tables and len(result.congestion)):
        return False
    again = 'clearway run RESULT/scenario.toml --set "measure.packets={}" --out OUT'
    if result.estimated:
        where = "at flow level, which has no packets" if result.level == "flow" else "one link at a time"
        raise ValueError(f"{result.name!r} was run {where}: {again}; clearway view OUT")
    if "packets" not in result.tables:
        raise ValueError(
            f"{result.name!r} was run without recorded packets: {again}; clearway view OUT (--trace FILE records "
            "them, too; docs/results.md says how to record some)"
        )
    raise ValueError(
        f"{result.name!r} has no packet of those that measure.packets asks for: ask for other flows, links or times"
    )


def _samples(result: Result, stride: int) -> tuple[pa.Table | None, int]:
    """The samples of congestion, evenly over the run, and of how many there is one."""
    table = result._tables.get("congestion")
    if table is None or not table.num_rows:
        return None, 1
    times = table["time_ps"].to_numpy()
    number = np.concatenate([[0], np.cumsum(np.diff(times.astype(np.int64)) != 0)])
    while np.count_nonzero(number % stride == 0) > ROWS_MAX and stride <= number[-1]:
        stride += 1
    return table.filter(pa.array(number % stride == 0)), stride


def _column(column: pa.ChunkedArray) -> tuple[Any, list[str] | None]:
    """Its values as floats, or as places in a list of names, which is in the order of their first use."""
    if not (pa.types.is_dictionary(column.type) or pa.types.is_string(column.type)):
        numbers = column.to_pandas().astype("Float64").to_numpy(dtype="<f8", na_value=math.nan)
        return numbers, None
    codes, names = pd.factorize(column.to_pandas().astype(object), sort=False)
    return np.asarray(codes, dtype="<u4"), [str(name) for name in names]


def _dims(result: Result) -> list[int]:
    """The lengths of a torus or mesh."""
    fabric = tomllib.loads(result.scenario_toml).get("fabric", {})
    return next((list(of["dims"]) for kind, of in fabric.items() if kind in ("torus", "mesh")), [])


def _tenants(result: Result) -> list[tuple[str, list[str]]]:
    """Names of entities with the classes of their flows."""
    entities = tomllib.loads(result.scenario_toml).get("entity", [])
    return [(one["name"], one.get("traffic", [])) for one in entities]


def _notes(result: Result, packets: bool, stride: int) -> list[str]:
    """The parts that were cut."""
    said = [note for note in result.info.get("warnings", []) if packets and note.startswith("measure.packets:")]
    rows = len(result.packets) if packets else 0
    if rows > ROWS_MAX:
        said.append(f"Only the first {ROWS_MAX:,} of {rows:,} recorded packets are drawn.")
    if stride > 1:
        said.append(f"Of the samples of congestion one in {stride:,} is drawn.")
    return said


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
