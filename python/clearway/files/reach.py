"""Every text of a scenario and of a sweep's file that may name something outside of it: a file, a folder, a program, a
device, an address. A file may come from another person, so each has a rule.

A test walks the schema: text of any form that is not listed here fails it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NoReturn

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Kind(Enum):
    """The kind of thing that a text names, and what follows from it."""

    WORD = "a name within the scenario or its results; it names nothing on the machine"
    READS = "a file that is read, relative to the file that names it; anywhere, as it is only read"
    READS_OF_RANKS = "what the names of such files begin with"
    READS_SCENARIO = "a scenario that is read, relative to the file that names it"
    PROGRAM = "the folder of a crate, whose program runs once the user trusts it"
    WRITES = "a file or folder that is written: it lies in the folder of the results, or the command line names it"
    DEVICE = "a network device or namespace, which the command line must name, too"
    ADDRESS = "addresses of devices that the command line names"
    LAUNCHER = "part of what starts a cluster, which the command line must ask for"


SCENARIO = {
    "TRANSPORT.custom.digest": Kind.WORD,
    "TRANSPORT.custom.module": Kind.READS,
    "TRANSPORT.custom.python": Kind.WORD,
    "TRANSPORT.custom.settings.*": Kind.WORD,
    "TRANSPORT.r2c2.allocations.traffic": Kind.WORD,
    "entity.hosts": Kind.WORD,
    "entity.name": Kind.WORD,
    "entity.request.link": Kind.WORD,
    "entity.traffic": Kind.WORD,
    "entity.transports": Kind.WORD,
    "fabric.file.path": Kind.READS,
    "failure.link": Kind.WORD,
    "failure.switch": Kind.WORD,
    "flow_control.mmu.group.pool": Kind.WORD,
    "flow_control.mmu.pool.name": Kind.WORD,
    "flow_control.mmu.port.pool": Kind.WORD,
    "flow_control.mmu.queue.pool": Kind.WORD,
    "flow_control.mmu.role.group.pool": Kind.WORD,
    "flow_control.mmu.role.pool.name": Kind.WORD,
    "flow_control.mmu.role.port.pool": Kind.WORD,
    "flow_control.mmu.role.queue.pool": Kind.WORD,
    "flow_control.mmu.role.switches": Kind.WORD,
    "job.hosts": Kind.WORD,
    "job.name": Kind.WORD,
    "job.steps.all_gather.name": Kind.WORD,
    "job.steps.all_reduce.name": Kind.WORD,
    "job.steps.all_to_all.name": Kind.WORD,
    "job.steps.broadcast.name": Kind.WORD,
    "job.steps.reduce_scatter.name": Kind.WORD,
    "job.steps.send_recv.name": Kind.WORD,
    "job.trace.chakra.groups": Kind.READS,
    "job.trace.chakra.path": Kind.READS_OF_RANKS,
    "job.trace.goal.path": Kind.READS,
    "job.trace.htsim.path": Kind.READS,
    "job.trace.simai.path": Kind.READS,
    "live.attach.*": Kind.DEVICE,
    "live.capture.*": Kind.WRITES,
    "live.network": Kind.ADDRESS,
    "live.network6": Kind.ADDRESS,
    "measure.arrivals": Kind.WORD,
    "measure.flows.classes": Kind.WORD,
    "measure.flows.hosts": Kind.WORD,
    "measure.packets.classes": Kind.WORD,
    "measure.packets.hosts": Kind.WORD,
    "measure.packets.links": Kind.WORD,
    "measure.ports": Kind.WORD,
    "name": Kind.WORD,
    "traffic.avoid": Kind.WORD,
    "traffic.name": Kind.WORD,
    "traffic.pattern.hot_spots.hosts": Kind.WORD,
    "traffic.receivers": Kind.WORD,
    "traffic.senders": Kind.WORD,
    "traffic.sizes.cdf_file.path": Kind.READS,
    "traffic.stream": Kind.WORD,
    "traffic.trace.csv.class": Kind.WORD,
    "traffic.trace.csv.path": Kind.READS,
    "traffic.trace.hpcc.path": Kind.READS,
    "traffic.trace.htsim.path": Kind.READS,
    "traffic.trace.parquet.class": Kind.WORD,
    "traffic.trace.parquet.path": Kind.READS,
    "transports.*": Kind.PROGRAM,
    "transports.*.digest": Kind.WORD,
    "transports.*.folder": Kind.PROGRAM,
}
"""Keys of a scenario, without places in lists. TRANSPORT is any of `TRANSPORTS`, * any name."""

TRANSPORTS = ("traffic.resubmit.over", "traffic.transport", "job.transport", "live.sockets.*.transport", "transport")
"""Where a scenario has a transport with its settings."""

SWEEP = {
    "name": Kind.WORD,
    "scenario": Kind.READS_SCENARIO,
    "set": Kind.WORD,
    "vary": Kind.WORD,
    "zip": Kind.WORD,
    "skip": Kind.WORD,
    "store": Kind.WRITES,
    "cluster": Kind.LAUNCHER,
}
"""Keys of a sweep's file. Below `scenario`, `set`, `vary` and `zip` are keys of a scenario, with their own kinds."""


def kind_of(key: str) -> Kind | None:
    """The kind of a scenario's key, without places in lists; none if it is not listed."""
    for place in TRANSPORTS:
        if key.startswith(f"{place}."):
            return SCENARIO.get("TRANSPORT" + key.removeprefix(place))
    return SCENARIO.get(key)


_READ = {key.rpartition(".")[2]: kind for key, kind in SCENARIO.items() if kind in (Kind.READS, Kind.READS_OF_RANKS)}
OF_RANKS = ".*.et"


def named(text: str, sets: Sequence[tuple[str, str]], folder: Path) -> tuple[list[Path], list[Path]]:
    """The files that a scenario or a sweep may read, and the folders of crates, by its text and the keys set over it.

    By the last words of keys alone: the reader of the file decides whether the keys are right.
    """
    files: list[Path] = []
    crates: list[Path] = []
    for key, value in _texts(text, sets):
        *_, above, last = ["", *key]
        place = folder / value
        if last == "folder" or above == "transports":
            crates.append(place)
        elif last in _READ:
            files += [place, *place.parent.glob(f"{_plain(place.name)}{OF_RANKS}")]
    return [file for file in files if file.is_file()], [crate for crate in crates if crate.is_dir()]


def name_of(text: str) -> str:
    """The name that a sweep's file gives itself; empty if none."""
    try:
        said = tomllib.loads(text).get("name")
    except (tomllib.TOMLDecodeError, RecursionError):
        return ""
    return said if isinstance(said, str) else ""


def scenarios(text: str, folder: Path) -> list[Path]:
    """The scenarios that a sweep's file names."""
    try:
        said = tomllib.loads(text).get("scenario")
    except (tomllib.TOMLDecodeError, RecursionError):
        return []
    files = said if isinstance(said, list) else [said]
    return [folder / file for file in files if isinstance(file, str)]


def _plain(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _texts(text: str, sets: Sequence[tuple[str, str]]) -> Iterator[tuple[tuple[str, ...], str]]:
    """All texts, each with the words of its key."""
    try:
        yield from _below((), tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    for key, value in sets:
        words = tuple(key.replace("[", ".").replace("]", "").split("."))
        try:
            yield from _below(words, tomllib.loads(f"it = {value}")["it"])
        except (tomllib.TOMLDecodeError, RecursionError, KeyError):
            yield words, value


def _below(key: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            # The values of a sweep's key.
            words = () if name in ("values", "from", "to") else tuple(name.split("."))
            yield from _below((*key, *words), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _below(key, inner)
    elif isinstance(value, str):
        yield key, value


def check_live(text: str, sets: Sequence[tuple[str, str]], found: Mapping[str, Any], refuse: Any) -> dict[str, str]:
    """The parts of the machine that a live run of a scenario may use: the captures that its text names, by link. Those
    that were
    set over the text are the user's own. `found` is the table `live` as read, and `refuse(key, message)` raises.
    """
    mine = {key for key, _ in sets}

    def of_text(table: str) -> Iterator[tuple[str, str]]:
        own = tomllib.loads(text).get("live", {}).get(table, {})
        for name, value in found.get(table, {}).items():
            is_set = {"live", f"live.{table}", f"live.{table}.{name}"} & mine
            if not is_set and own.get(name) == value:
                yield name, str(value)

    for name, device in of_text("attach"):
        _refused(
            refuse,
            f"live.attach.{name}",
            f"{json.dumps(device)}: a scenario can't take a device of this machine by itself; say so on the command "
            f"line: --attach {name}={device}",
        )
    captures = dict(of_text("capture"))
    for name, file in captures.items():
        if not is_below(file):
            _refused(
                refuse,
                f"live.capture.{name}",
                f"{json.dumps(file)} is not in the folder of the results, where a scenario's captures go: write a "
                f'file\'s name, such as "{name}.pcapng", or name the file on the command line: --capture {name}:FILE',
            )
    return captures


def _refused(refuse: Any, key: str, message: str) -> NoReturn:
    refuse(key, message)
    raise AssertionError(key)


def is_below(path: str) -> bool:
    """Whether a path that a file names stays in the folder that it starts from."""
    place = Path(path)
    return not place.is_absolute() and ".." not in place.parts and place.name != ""
