"""The tables of `docs/results.md`, from what the engine says of its columns. As a program: writes them into the page."""

from __future__ import annotations

from pathlib import Path

import clearway as cw

BEGIN, END = "<!-- columns: begin -->\n", "<!-- columns: end -->\n"
ROWS = {
    "flows": "one row a flow",
    "queues": "one row a switch and sample, `measure.interval` apart",
    "utilisation": "one row a tier of links and sample",
    "links": "one row a directed link, over the whole run",
    "counters": "one row a transport and counter",
    "congestion": "one row a sample, port and queue that is paused, in a hotspot, or a root's, if the scenario has a flow control",
    "entities": "one row an entity and interval of `measure.interval`, if the scenario names entities",
    "waits": "one row an entity and kind of queue, over the whole run, if there are entities",
    "guarantees": "one row a link that a switch sends on, over the whole run, if a transport guarantees something",
    "guaranteed_waits": "one row a quantile of the waits of data packets, over the whole run, if a transport guarantees something",
    "arrivals": "one row a data packet that came to a host of `measure.arrivals`, repetitions too",
    "measures": "one row a flow and thing that its transport has measured of it, if it does",
    "aqs": "one row an entity, switch and pipeline that has AQs of it, over the whole run, if there are entities",
}


def tables() -> str:
    tiny = cw.Scenario.load("examples/tiny.toml")
    asked = {"flow_control": "pfc", "entity": [{"name": "all", "hosts": "0"}], "measure.arrivals": ["host0"]}
    runs = [
        cw.run(tiny.with_(asked)),
        cw.run(tiny.with_({"transport": "harmony"})),
        cw.run(tiny.with_({"transport": "r2c2"})),
    ]
    lines = []
    for name, table in {name: table for result in runs for name, table in result.tables.items()}.items():
        lines += [f"### `{name}.parquet`", "", f"{ROWS[name].capitalize()}.", "", "| column | unit | type | what it says |"]
        lines.append("| --- | --- | --- | --- |")
        for field in table.schema:
            unit, doc = (field.metadata[key].decode() for key in (b"unit", b"doc"))
            kind = "name" if str(field.type).startswith("dictionary") else str(field.type)
            lines.append(f"| `{field.name}` | {unit} | {kind} | {doc} |")
        lines.append("")
    return "\n".join(lines)


def between_marks(page: str) -> str:
    return page.split(BEGIN, 1)[1].split(END, 1)[0]


if __name__ == "__main__":
    path = Path("docs/results.md")
    before, after = path.read_text().split(BEGIN)[0], path.read_text().split(END)[1]
    path.write_text(before + BEGIN + tables() + END + after)
