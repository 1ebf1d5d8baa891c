"""`clearway import`: other tools' configurations as scenarios."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

import clearway as cw
from clearway.cli.options import Json
from clearway.cli.said import Said
from clearway.files.places import check_folder
from clearway.files.whole import replace
from clearway.scenarios import sonic


class Format(str, Enum):
    """The tool that the files are for."""

    SONIC = "sonic"


Lookup = Annotated[
    Path | None, typer.Option("--lookup", help="SONiC's pg_profile_lookup.ini of the switch.", metavar="FILE")
]
Ports = Annotated[
    str | None,
    typer.Option("--ports", help="As these ports are set: Ethernet0,Ethernet4. Default: most.", metavar="NAMES"),
]
Sizes = Annotated[
    list[str] | None,
    typer.Option("--size", help="Bytes of a pool that the file leaves to the switch (repeatable).", metavar="POOL=N"),
]


def sizes_of(given: list[str] | None) -> dict[str, int]:
    """Bytes by pool, of `--size`."""
    sizes = {}
    for text in given or []:
        name, _, number = text.partition("=")
        if not number.isdecimal():
            raise ValueError(f"--size {text}: write a pool's name and bytes, such as ingress_lossless_pool=32000000")
        sizes[name] = int(number)
    return sizes


def import_(
    format_: Annotated[Format, typer.Argument(help="The tool that the files are for.", metavar="FORMAT")],
    files: Annotated[list[Path], typer.Argument(help="Configurations, such as config_db.json.", metavar="FILE...")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The scenario, such as switch.toml.", metavar="FILE")],
    lookup: Lookup = None,
    ports: Ports = None,
    size: Sizes = None,
    json_: Json = False,
) -> None:
    """Write a scenario of a switch's configuration: buffers, priority groups, queues, maps, weights and marks.

    `clearway import sonic config_db.json -o switch.toml` reads SONiC's. A key that is not modelled is named.
    """
    said = Said(json_)
    if out.is_dir():
        raise IsADirectoryError(f"--out {out}: it is a folder; name a file, such as {out / 'switch.toml'}")
    check_folder(out.parent)
    found = sonic.read(files, lookup, ports.split(",") if ports else (), sizes_of(size))
    cw.Scenario.from_toml(found.toml, str(out))
    replace(out, lambda part: part.write_text(found.toml, encoding="utf-8"))
    for note in found.notes:
        said.line(f"not modelled: {note}" if "not modelled" not in note else note, {})
    said.line(f"written: {out} ({len(found.ports)} ports alike)", {"written": str(out), "notes": found.notes})
    said.end()


import_.__name__ = "import"
