"""`clearway trace`, and what `clearway run --trace` records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import clearway as cw
from clearway.cli.options import read_result, told_of

TraceFile = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        help="Also record packets one by one, and write them as a trace for Perfetto's viewer, ui.perfetto.dev.",
        metavar="FILE",
    ),
]
Flows = Annotated[list[int] | None, typer.Option("--trace-flow", help="Only this flow (repeatable).", metavar="N")]
Classes = Annotated[list[str] | None, typer.Option("--trace-class", help="Only this class of traffic (repeatable).")]
Hosts = Annotated[list[str] | None, typer.Option("--trace-host", help="Only flows to or from this host (repeatable).")]
Links = Annotated[
    list[str] | None, typer.Option("--trace-link", help="Only this link, such as spine0-leaf2 (repeatable).")
]
From = Annotated[str | None, typer.Option("--trace-from", help="Only from this time on, such as 1ms.", metavar="TIME")]
Until = Annotated[str | None, typer.Option("--trace-until", help="Only until this time.", metavar="TIME")]


def recorded(read: cw.Scenario, file: Path | None, **some: Any) -> cw.Scenario:
    """The scenario with the packets recorded that are to be in a trace."""
    given = {key: value for key, value in some.items() if value}
    if file is None:
        if given:
            raise ValueError(f"--trace-{next(iter(given))}: it goes with --trace FILE")
        return read
    if file.is_dir():
        raise ValueError(f"--trace {file}: it is a folder; name a file, such as {file / 'out.pftrace'}")
    keys = {"flow": "flows", "class": "classes", "host": "hosts", "link": "links", "from": "from", "until": "until"}
    measure = read.to_dict().get("measure", {})
    asked = measure.get("packets", {}) | {keys[key]: value for key, value in given.items()}
    # The hosts' state of these flows is recorded too, unless the scenario names other flows.
    followed = {key: value for key, value in asked.items() if key != "links"}
    # So does what is agreed on between them, which belongs to no flow.
    agreed = measure.get("events") or ["matching", "reservations"]
    keep = {"measure.flows": measure.get("flows", followed), "measure.events": agreed}
    return read.with_({"measure.packets": asked} | keep)


def trace(
    result: Annotated[Path, typer.Argument(help="Folder of a result with recorded packets.", metavar="RESULT")],
    file: Annotated[Path, typer.Argument(help="The trace, such as out.pftrace.", metavar="FILE")],
) -> None:
    """Write a result's recorded packets as a trace for Perfetto's viewer, https://ui.perfetto.dev."""
    found = read_result(result)
    with told_of("trace", result):
        typer.echo(f"trace: {found.trace(file)}")
