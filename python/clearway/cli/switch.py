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
from clearway.files.places import check_folder
from clearway.files.whole import replace
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


def headroom(
    places: Annotated[
        list[Path],
        typer.Argument(help="pg_profile_lookup.ini, or folders with such, as sonic-buildimage.", metavar="PATH..."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write all rows into this file, as CSV.", metavar="FILE")
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="Also write the summary into this page, between its marks.", metavar="PAGE")
    ] = None,
    json_: Json = False,
) -> None:
    """Compare headroom in SONiC's lookup tables with the formula, by kind of chip.

    The formula has two frames of 9,216 bytes, both ways of the cable, and what a neighbour sends until it stops.
    """
    from clearway.reports import marked
    from clearway.scenarios import sonic_tables

    said = Said(json_)
    if write is not None:
        marked.check(write, sonic_tables.MARK)
    if out is not None:
        check_folder(out.parent)
    found = sonic_tables.tables(places)
    rows = sonic_tables.rows(found)
    numbers = "cable, rest: what grows with the cable and what does not, over the formula's"
    said.table(sonic_tables.summary(rows), "chips", numbers)
    if out is not None:
        replace(out, lambda part: rows.to_csv(part, index=False))
        said.place("rows", out)
    if write is not None:
        marked.put(write, sonic_tables.MARK, sonic_tables.markdown(found))
        said.place("page", write)
    said.end()


headroom.__name__ = "switch headroom"
