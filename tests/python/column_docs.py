"""The tables of `docs/results.md`, and `clearway/results/tables.py`, from what the engine says of its columns.

As a program: writes both.
"""

from __future__ import annotations

from pathlib import Path

import clearway as cw
import pyarrow as pa

BEGIN, END = "<!-- columns: begin -->\n", "<!-- columns: end -->\n"
BEGIN_CODE, END_CODE = "# columns: begin\n", "# columns: end\n"
WIDTH = 120
ROWS = {
    "flows": "one row a flow",
    "queues": "one row a switch and sample, `measure.interval` apart, or a multiple in a long run (`measure.rows_max`)",
    "utilisation": "one row a tier of links and sample",
    "links": "one row a directed link, over the whole run",
    "counters": "one row a transport and counter",
    "congestion": (
        "one row a sample, port and queue, of queues that are paused, in a hotspot or a root's, if the scenario has a "
        "flow control"
    ),
    "entities": "one row an entity and interval of `measure.interval`, if the scenario names entities",
    "waits": "one row an entity and kind of queue, over the whole run, if there are entities",
    "guarantees": "one row a link from a switch, over the whole run, if a transport guarantees something",
    "guaranteed_waits": (
        "one row a quantile of the waits of data packets, over the whole run, if a transport guarantees something"
    ),
    "arrivals": "one row a data packet that arrived at a host of `measure.arrivals`, repeated ones included",
    "packets": (
        "one row a packet and link that it took, and one a packet that was lost, of those of `measure.packets`"
    ),
    "events": "one row an event of the kinds of `measure.events`",
    "ports": (
        "one row a change of a port of `measure.ports`, or several of them in a long run (`measure.rows_max`); port "
        "after port"
    ),
    "states": "one row a change of the state that a host keeps for a flow of `measure.flows`",
    "jobs": "one row an iteration of a job, if the scenario has jobs",
    "collectives": "one row a collective that a group of ranks carried out, if the scenario has jobs",
    "ranks": "one row a rank and a computation or collective of it, if the scenario has jobs",
    "critical": (
        "one row a part of a job's critical path, in order: what made the job as long as it was, if the scenario has "
        "jobs"
    ),
    "measures": "one row a flow and measurement, if a transport measures anything",
    "aqs": "one row an AQ, over the whole run, if there are entities",
}


def columns() -> dict[str, pa.Schema]:
    tiny = cw.Scenario.load("examples/tiny.toml")
    asked = {
        "flow_control": "pfc",
        "entity": [{"name": "all", "hosts": "0"}],
        "measure.arrivals": ["host0"],
        "measure.packets": {},
        "measure.flows": {},
        "measure.events": ["drops"],
        "measure.ports": ["switch0:0"],
        "job": [{"steps": [{"all_reduce": {"bytes": "8KB"}}]}],
    }
    runs = [
        cw.run(tiny.with_(asked)),
        cw.run(tiny.with_({"transport": "harmony"})),
        cw.run(tiny.with_({"transport": "r2c2"})),
    ]
    return {name: table.schema for result in runs for name, table in result._tables.items()}


def kind(field: pa.Field) -> str:
    type_ = "name" if str(field.type).startswith("dictionary") else str(field.type)
    return f"{type_}?" if b"missing" in field.metadata else type_


def tables() -> str:
    lines = []
    for name, schema in columns().items():
        lines += [
            f"### `{name}.parquet`",
            "",
            f"{ROWS[name].capitalize()}.",
            "",
            "| column | unit | type | what it says |",
        ]
        lines.append("| --- | --- | --- | --- |")
        for field in schema:
            unit, doc = (field.metadata[key].decode() for key in (b"unit", b"doc"))
            lines.append(f"| `{field.name}` | {unit} | {kind(field)} | {doc} |")
        lines.append("")
    return "\n".join(lines)


def code() -> str:
    lines = ["TABLES: dict[str, dict[str, str]] = {"]
    for name, schema in columns().items():
        lines += [f'    "{name}": {{', "       "]
        for field in schema:
            item = f' "{field.name}": "{kind(field)}",'
            if len(lines[-1]) + len(item) > WIDTH:
                lines.append("       ")
            lines[-1] += item
        lines.append("    },")
    return "\n".join(
        [
            *lines,
            "}  # fmt: skip",
            '"""By table and column: the type; "name" is text of which each value is kept once, and "?" behind it says',
            'that rows may have no value."""',
            "",
        ]
    )


def between_marks(page: str, begin: str = BEGIN, end: str = END) -> str:
    return page.split(begin, 1)[1].split(end, 1)[0]


if __name__ == "__main__":
    pages = (
        ("docs/results.md", BEGIN, END, tables()),
        ("python/clearway/results/tables.py", BEGIN_CODE, END_CODE, code()),
    )
    for path, begin, end, text in ((Path(name), begin, end, text) for name, begin, end, text in pages):
        before, after = path.read_text().split(begin)[0], path.read_text().split(end)[1]
        path.write_text(before + begin + text + end + after)
