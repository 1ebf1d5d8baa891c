"""`clearway switch`: what a switch's configuration means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import clearway as cw
from clearway.cli.help import App
from clearway.cli.imports import Lookup, Ports, Sizes, sizes_of
from clearway.cli.options import Json
from clearway.cli.said import Said
from clearway.scenarios import sonic, switch_check

app = App(no_args_is_help=True)


@app.callback()
def switch() -> None:
    """Say what a switch's configuration means."""


def check(
    file: Annotated[Path, typer.Argument(help="SONiC's config_db.json, or a scenario.", metavar="FILE")],
    lookup: Lookup = None,
    ports: Ports = None,
    size: Sizes = None,
    json_: Json = False,
) -> None:
    """Check a switch's configuration by arithmetic: headroom, pools, marks before pauses, starved queues.

    Reads what `clearway import sonic` reads, or a scenario that it has written.
    """
    said = Said(json_)
    if file.suffix == ".toml":
        scenario = cw.Scenario.load(file)
    else:
        found = sonic.read([file], lookup, ports.split(",") if ports else (), sizes_of(size))
        scenario = cw.Scenario.from_toml(found.toml, str(file))
    for finding in switch_check.check(scenario):
        mark = "ok   " if finding.fine else "doubt"
        said.line(f"{mark} {finding.key}: {finding.said}", {})
    said.end()


check.__name__ = "switch check"
