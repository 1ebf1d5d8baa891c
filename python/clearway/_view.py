"""A run's packets drawn over time, as one page that needs no network: `clearway view`.

The viewer is `_viewer/*.js`, which the playground has, too. `_viewer/format.js` says what a view is; here it is made of
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

from clearway import _html
from clearway._packets import asked

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from clearway._results import Result

ROWS_MAX = 200_000
"""Packets and samples that a view holds."""

# As in `_viewer/format.js`.
COLUMNS = {
    "links": ("from", "to", "tier", "rate_bps", "delay_ps"),
    "flows": (
        *("flow", "src", "dst", "bytes", "class", "transport", "start_ps", "completed_ps", "slowdown", "status"),
    ),
    "packets": (
        *("time_ps", "node", "to", "link", "came_ps", "last_ps", "lost", "flow", "transport", "says", "source"),
        *("destination", "hop", "class", "bytes", "payload_bytes", "offset", "marked", "trimmed"),
    ),
    "congestion": ("time_ps", "link", "cause", "role", "paused", "bytes", "innocent_bytes"),
}
MODULES = ("format", "layout", "history", "story", "picture", "viewer")
"""Each may import those before it, as `clearway/NAME.js`."""


def write(result: Result, path: Path) -> Path:
    """Writes the page of a result with recorded packets: the whole file or nothing."""
    words = base64.b64encode(gzip.compress(packed(result), 6, mtime=0)).decode()
    folder = files("clearway").joinpath("_viewer")
    modules = {name: folder.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in MODULES}
    places = {f"clearway/{name}.js": f"data:text/javascript;base64,{_base64(text)}" for name, text in modules.items()}
    body = (
        f"<h1>{escape(result.name)}</h1><p class=subtitle>Every recorded packet, drawn over time.</p>"
        f"<script type=importmap>{json.dumps({'imports': places})}</script>"
        "<div id=view>This page needs JavaScript.</div>"
        f"<script type=text/plain id=view-data>{words}</script>"
        '<script type=module>import { mountPacked } from "clearway/viewer.js"; '
        'const at = (id) => document.getElementById(id); await mountPacked(at("view"), at("view-data").textContent);'
        "</script>"
    )
    css = folder.joinpath("viewer.css").read_text(encoding="utf-8")
    return _html.write(f"{result.name}: packets over time", [body], path, f"body {{ max-width: 80rem; }}\n{css}")


def packed(result: Result) -> bytes:
    """The view of a result: the length of its head, its head, and its columns one after another."""
    head: dict[str, Any] = {
        "name": result.name,
        "end_ps": result.info["end_ps"],
        "dims": _dims(result),
        "partial": any(asked(result).get(key) for key in ("flows", "classes", "hosts", "links")),
        "notes": _notes(result),
        "tables": {},
    }
    columns = []
    for name, wanted in COLUMNS.items():
        table = _recorded(result) if name == "packets" else result.tables.get(name)
        if table is None or not set(wanted) <= set(table.column_names):
            continue
        table = table.slice(0, ROWS_MAX) if name in ("packets", "congestion") else table
        said = {}
        for column in wanted:
            values, names = _column(table[column])
            said[column] = {"kind": "numbers"} if names is None else {"kind": "names", "names": names}
            columns.append(values.tobytes())
        head["tables"][name] = {"rows": table.num_rows, "columns": said}
    text = json.dumps(head, separators=(",", ":")).encode()
    return b"".join([struct.pack("<I", len(text)), text, *columns])


def _recorded(result: Result) -> pa.Table:
    """The table `packets`."""
    again = 'clearway run SCENARIO.toml --set "measure.packets={}" --out OUT'
    if result.estimated:
        where = "at flow level, which has no packets" if result.level == "flow" else "one link at a time"
        raise ValueError(f"{result.name!r} was run {where}: {again}; clearway view OUT")
    if "packets" not in result.tables:
        raise ValueError(
            f"{result.name!r} was run without recorded packets: {again}; clearway view OUT (--trace FILE records "
            "them, too; docs/results.md says how to record some)"
        )
    table = result.tables["packets"]
    if not table.num_rows:
        raise ValueError(
            f"{result.name!r} has no packet of those that measure.packets asks for: ask for other flows, links or times"
        )
    return table


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


def _notes(result: Result) -> list[str]:
    """What was cut."""
    said = [note for note in result.info.get("warnings", []) if note.startswith("measure.packets:")]
    rows = _recorded(result).num_rows
    if rows > ROWS_MAX:
        said.append(f"Only the first {ROWS_MAX:,} of {rows:,} recorded packets are drawn.")
    return said


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
