"""`clearway import`: other tools' configurations as scenarios."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

import clearway as cw
from clearway.cli.options import Json
from clearway.cli.said import Said
from clearway.files.places import check_folder
from clearway.files.whole import replace
from clearway.scenarios import nic, sonic, sonic_fabric


class Format(str, Enum):
    """The tool that the files are for."""

    SONIC = "sonic"
    NIC = "nic"


Lookup = Annotated[
    Path | None, typer.Option("--lookup", help="SONiC's pg_profile_lookup.ini of the switch.", metavar="FILE")
]
Ports = Annotated[
    str | None,
    typer.Option("--ports", help="As these are set: Ethernet0,Ethernet4; of a NIC 1. Default: most.", metavar="NAMES"),
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


def port_of(ports: str | None, lookup: Path | None, size: list[str] | None) -> int:
    """The port of a NIC, of `--ports`."""
    if lookup is not None or size:
        raise ValueError("--lookup and --size go with sonic; delete them")
    if ports is not None and ports not in ("1", "2", "3", "4"):
        raise ValueError(f"--ports {ports}: a NIC has ports 1 to 4; write one of them")
    return int(ports or 1)


def import_(
    format_: Annotated[Format, typer.Argument(help="The tool that the files are for.", metavar="FORMAT")],
    files: Annotated[
        list[str],
        typer.Argument(
            help="Configurations or listings, such as config_db.json; with names if of several switches: leaf0=FILE "
            "'spine*=FILE'.",
            metavar="[NAME=]FILE...",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The scenario, such as switch.toml.", metavar="FILE")],
    lookup: Lookup = None,
    ports: Ports = None,
    size: Sizes = None,
    topology: Annotated[
        Path | None,
        typer.Option(help="Nodes and links of several switches, as fabric.file has them.", metavar="FILE"),
    ] = None,
    json_: Json = False,
) -> None:
    """Write a scenario of a configuration: of a switch's buffers, queues, weights and marks, or of a NIC's RoCE.

    `clearway import sonic config_db.json -o switch.toml` reads SONiC's, `clearway import nic roce.txt -o nic.toml` what
    `grep . /sys/class/net/eth2/ecn/roce_rp/*`, `mlxconfig query` and `mlnx_qos` print. A key that is not modelled is
    named. With names, `clearway import sonic leaf0=leaf0.json spine0=spine0.json -o fabric.toml`, it is a fabric of
    those switches. Which ports are linked follows from DEVICE_NEIGHBOR, from LLDP's tables given in the same way, or
    from --topology.
    """
    said = Said(json_)
    if out.is_dir():
        raise IsADirectoryError(f"--out {out}: it is a folder; name a file, such as {out / 'switch.toml'}")
    check_folder(out.parent)
    if any(name for name, _ in named_of(files)):
        if format_ is not Format.SONIC:
            raise ValueError("NAME=FILE is for several switches of sonic; a NIC's listings have no names")
        if ports:
            raise ValueError("--ports: is of one switch; of several, the ports that are linked are meant")
        _fabric(named_of(files), out, topology, lookup, sizes_of(size), said)
        return
    if topology is not None:
        raise ValueError("--topology: needs the names of switches: leaf0=FILE 'spine*=FILE'")
    paths = [path for _, path in named_of(files)]
    found: sonic.Imported | nic.Imported
    if format_ is Format.SONIC:
        found = sonic.read(paths, lookup, ports.split(",") if ports else (), sizes_of(size))
        read = f"{len(found.ports)} ports alike"
    else:
        found = nic.read(paths, port_of(ports, lookup, size))
        read = f"{found.read} parameters"
    cw.Scenario.from_toml(found.toml, str(out))
    replace(out, lambda part: part.write_text(found.toml, encoding="utf-8"))
    for note in found.notes:
        said.line(f"not modelled: {note}" if "not modelled" not in note else note, {})
    said.line(f"written: {out} ({read})", {"written": str(out), "notes": found.notes})
    said.end()


def named_of(files: Iterable[str]) -> list[tuple[str, Path]]:
    """Files with the names of switches before them; empty names where there are none."""
    found = []
    for text in files:
        name, equals, path = text.partition("=")
        found.append((name, Path(path)) if equals and name and path and "/" not in name else ("", Path(text)))
    names = [name for name, _ in found]
    if any(names) and not all(names):
        bare = next(path for name, path in found if not name)
        raise ValueError(f"{bare}: has no name before it, and others have; write NAME={bare}")
    return found


def graph_of(out: Path) -> Path:
    """The file of nodes and links beside a scenario."""
    return out.with_suffix(".txt")


def _fabric(
    configs: list[tuple[str, Path]],
    out: Path,
    topology: Path | None,
    lookup: Path | None,
    sizes: dict[str, int],
    said: Said,
) -> None:
    place = graph_of(out)
    name = place.name if topology is None else str(topology.absolute())
    found = sonic_fabric.read(configs, name, topology, lookup, sizes)
    # Both are checked before either is written.
    with tempfile.TemporaryDirectory() as beside:
        if found.graph is not None:
            (Path(beside) / name).write_text(found.graph, encoding="utf-8")
        cw.Scenario.from_toml(found.toml, str(out), beside).check()
    if found.graph is not None:
        graph = found.graph
        replace(place, lambda part: part.write_text(graph, encoding="utf-8"))
    replace(out, lambda part: part.write_text(found.toml, encoding="utf-8"))
    for note in found.notes:
        said.line(f"not modelled: {note}" if "not modelled" not in note else note, {})
    if found.graph is not None:
        said.place("links", place)
    switches = ", ".join(found.switches[:4]) + (", ..." if len(found.switches) > 4 else "")
    said.line(
        f"written: {out} ({len(found.switches)} switches: {switches})",
        {"written": str(out), "notes": found.notes, "switches": found.switches},
    )
    said.end()


import_.__name__ = "import"
